// Bindings of odd names and rare types: that they are read at all, and that names lead where they should.
import { expect, expectTypeOf, test } from 'vitest';
import { DbConnection, procedures, reducers, tables } from './generated/odd';
import type { ObjectOrString, Promise as OddPromise, Uint8Array as OddBytes } from './generated/odd/types';

test('they are read, and every name is there', () => {
  expect(DbConnection.builder()).toBeTruthy();
  expect(Object.keys(tables).sort()).toEqual(['class', 'function', 'hidden', 'package', 'types']);
  expect(Object.keys(reducers).sort()).toEqual(['camelCase', 'delete', 'secret', 'types']);
  expect(Object.keys(procedures).sort()).toEqual(['index', 'void']);
});

test('types that contain themselves have their own shape', () => {
  expectTypeOf<OddBytes>().toEqualTypeOf<{ inner: OddBytes[]; data: Uint8Array }>();
  expectTypeOf<OddPromise['itself']>().toEqualTypeOf<OddPromise | undefined>();
  expectTypeOf<ObjectOrString['tag']>().toEqualTypeOf<'Object' | 'MyString'>();
});

test('an index does not hide what tables have of their own', () => {
  type Indexes = keyof DbConnection['db']['class'];

  expectTypeOf<'by_count'>().toExtend<Indexes>();
  expectTypeOf<DbConnection['db']['class']['count']>().toEqualTypeOf<() => bigint>();
});
