# Lists all files here: type, permissions, size, contents. Guest and host see the same.
find . | LC_ALL=C sort | while read -r path; do
    if [ -L "$path" ]; then
        echo "link $path to $(readlink "$path")"
    elif [ -d "$path" ]; then
        echo "directory $path $(stat -c %a "$path")"
    else
        echo "file $path $(stat -c '%a %s %h' "$path") $(cksum < "$path")"
    fi
done
