#!/usr/bin/env bash
# All tests: those of Python, in $JOBS processes, and beside them those that run in Node and in a browser. What
# `make test` runs. With $COVERAGE, also what those of Python cover, their servers and programs included (those that
# they kill tell nothing); below the limits of tests/coverage_report.py that is a failure.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
"${MAKE:-make}" sdk page console-test >"$log" 2>&1 &
pages=$!
trap 'kill "$pages" 2>/dev/null; exit 130' INT TERM

python=${PY:-.venv/bin/python}
run=("$python" -m)
if [ -n "${COVERAGE:-}" ]; then
    "$python" -m coverage erase
    run+=(coverage run -m)
fi
"${run[@]}" pytest --numprocesses "${JOBS:-2}" --dist worksteal
python_code=$?
echo "waiting for the tests in Node and in the browser"
wait "$pages"
pages_code=$?
cat "$log"
coverage_code=0
if [ -n "${COVERAGE:-}" ]; then
    echo "what the tests of Python cover:"
    "$python" -m coverage combine --quiet &&
        "$python" -m coverage json --quiet -o - | "$python" tests/coverage_report.py
    coverage_code=$?
fi
if [ "$python_code" != 0 ]; then
    echo "tests of Python failed; see above the tests in Node" >&2
fi
for code in "$python_code" "$pages_code" "$coverage_code"; do
    [ "$code" = 0 ] || exit "$code"
done
