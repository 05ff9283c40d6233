# What the host does in the shared directory while the guest runs; without a host it is run in the
# guest. It answers the guest's question once.
until [ -f question ]; do sleep 1; done
echo "changed on the host" > changed.new
mv changed.new changed
echo "and more by the host" >> appended
mkdir made-by-host
echo "a file of the host" > made-by-host/file
rm tree/one
echo "answer to: $(cat question)" > answer.new
mv answer.new answer
