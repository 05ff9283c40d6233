#!/bin/sh
# PACKAGE0006 jq: selects, groups and changes JSON
cat >data.json <<'END'
[{"name":"Ann","tags":["a","b"],"n":1},{"name":"Bob","tags":["b"],"n":2.5},{"name":"Cy","tags":[],"n":1e3}]
END
jq -c 'map({(.name): .n}) | add' data.json
jq -r '.[] | select(.tags | index("b")) | "\(.name)=\(.n)"' data.json
jq -c '[.[].tags[]] | group_by(.) | map({key: .[0], value: length}) | from_entries' data.json
jq -S --arg x y '.[0] + {x: $x}' data.json
jq -n '[limit(5; repeat(1))] | length, ("2024-01-01T00:00:00Z" | fromdate), ("a-b" | test("^a.b$"))'
echo '{' | jq .
echo "status $?"
