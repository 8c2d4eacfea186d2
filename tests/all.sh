#!/usr/bin/env bash
# All tests: those of Python and, beside them, those that run in Node and in a browser. What `make test` runs.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
"${MAKE:-make}" sdk page console-test >"$log" 2>&1 &
pages=$!
trap 'kill "$pages" 2>/dev/null; exit 130' INT TERM

"${PY:-.venv/bin/python}" -m pytest
python_code=$?
echo "waiting for the tests in Node and in the browser"
wait "$pages"
pages_code=$?
cat "$log"
if [ "$python_code" != 0 ]; then
    echo "tests of Python failed; see above the tests in Node" >&2
fi
exit $((python_code != 0 ? python_code : pages_code))
