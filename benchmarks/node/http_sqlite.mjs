// A plain game server for comparison: HTTP, SQLite, a commit for each transfer. node http_sqlite.mjs FILE ACCOUNTS
import http from 'node:http';
import sqlite from 'node-sqlite3-wasm';

const [file, accounts] = process.argv.slice(2);
const db = new sqlite.Database(file);
db.exec('PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL');
db.exec('CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, balance INTEGER NOT NULL)');
db.exec('BEGIN');
const insert = db.prepare('INSERT INTO account VALUES (?, ?, 1000)');
for (let id = 0; id < Number(accounts); id += 1) {
  insert.run([id, `player ${id}`]);
}
db.exec('COMMIT');
const select = db.prepare('SELECT balance FROM account WHERE id = ?');
const update = db.prepare('UPDATE account SET balance = ? WHERE id = ?');

const server = http.createServer((request, response) => {
  let body = '';
  request.on('data', (part) => (body += part));
  request.on('end', () => {
    const [source, target, amount] = JSON.parse(body);
    db.exec('BEGIN');
    const payer = select.get([source]);
    const payee = select.get([target]);
    update.run([payer.balance - amount, source]);
    update.run([payee.balance + amount, target]);
    db.exec('COMMIT');
    response.end();
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
