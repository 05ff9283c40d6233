# Answers one request of HTTP with a file of the directory "$1": the server that a test's machine
# finds at port 80 of 10.0.2.100. The emulator starts it for each connection.
read -r method path version
while read -r line && [ "$line" != "$(printf '\r')" ]; do :; done
file="$1/${path#/}"
case "$path" in *..*) file= ;; esac
if [ "$method" = GET ] && [ -f "$file" ]; then
    printf 'HTTP/1.0 200 OK\r\nContent-Length: %s\r\n\r\n' "$(wc -c <"$file")"
    cat "$file"
else
    printf 'HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n'
fi
