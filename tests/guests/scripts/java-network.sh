#!/bin/sh
# GUEST0909 sockets, channels, datagrams and an HTTP server of a Java program over the loopback
ip link set lo up 2>/dev/null
mkdir -p /tmp/java && cd /tmp/java
cat >Net.java <<'END_OF_PROGRAM'
import com.sun.net.httpserver.HttpServer;
import java.io.*;
import java.net.*;
import java.net.http.*;
import java.nio.ByteBuffer;
import java.nio.channels.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;

public class Net {
    static final InetAddress HERE = InetAddress.getLoopbackAddress();

    static byte[] pattern(int length, int seed) {
        byte[] bytes = new byte[length];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }

    interface Work { void run() throws Exception; }

    static void start(Work work) {
        Thread thread = new Thread(() -> { try { work.run(); } catch (Exception ended) { } });
        thread.setDaemon(true);
        thread.start();
    }

    static int echo(int port, int length, int seed) throws Exception {
        try (Socket socket = new Socket(HERE, port)) {
            byte[] sent = pattern(length, seed);
            start(() -> { socket.getOutputStream().write(sent); socket.shutdownOutput(); });
            return Arrays.equals(sent, socket.getInputStream().readAllBytes()) ? 1 : 0;
        }
    }

    static void sockets() throws Exception {
        try (ServerSocket server = new ServerSocket(0, 50, HERE)) {
            start(() -> {
                while (true) {
                    Socket one = server.accept();
                    start(() -> { try (one) { one.getInputStream().transferTo(one.getOutputStream()); } });
                }
            });
            ExecutorService pool = Executors.newFixedThreadPool(20);
            List<Future<Integer>> asked = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                int seed = i;
                asked.add(pool.submit(() -> echo(server.getLocalPort(), 1000 * seed + 1, seed)));
            }
            int right = 0;
            for (Future<Integer> one : asked) right += one.get();
            pool.shutdown();
            System.out.println("sockets " + right);
        }
        try (Socket refused = new Socket(HERE, 1)) {
            System.out.println("connected");
        } catch (ConnectException error) {
            System.out.println(error.getMessage());
        }
        try (ServerSocket server = new ServerSocket(0, 50, HERE)) {
            server.setSoTimeout(50);
            server.accept();
        } catch (SocketTimeoutException error) {
            System.out.println(error.getMessage());
        }
        try (ServerSocket server = new ServerSocket(0, 50, HERE); Socket a = new Socket(HERE, server.getLocalPort());
             Socket b = server.accept()) {
            a.setTcpNoDelay(true); a.setKeepAlive(true); a.setSoLinger(true, 3); a.setTrafficClass(8);
            System.out.println(a.getTcpNoDelay() + " " + a.getKeepAlive() + " " + a.getSoLinger());
            a.sendUrgentData(7);
            b.setOOBInline(true);
            a.setSoLinger(true, 0);
            a.close();
            Thread.sleep(100);
            try { while (b.getInputStream().read() >= 0) { } System.out.println("end"); }
            catch (SocketException error) { System.out.println(error.getMessage()); }
        }
    }

    static void selector() throws Exception {
        Selector selector = Selector.open();
        ServerSocketChannel server = ServerSocketChannel.open().bind(new InetSocketAddress(HERE, 0));
        server.configureBlocking(false).register(selector, SelectionKey.OP_ACCEPT);
        int port = ((InetSocketAddress) server.getLocalAddress()).getPort(), clients = 60, length = 30000;
        start(() -> {
            while (true) {
                selector.select();
                for (Iterator<SelectionKey> keys = selector.selectedKeys().iterator(); keys.hasNext(); ) {
                    SelectionKey key = keys.next();
                    keys.remove();
                    if (key.isAcceptable()) {
                        SocketChannel one = server.accept();
                        one.configureBlocking(false).register(selector, SelectionKey.OP_READ, ByteBuffer.allocate(4096));
                        continue;
                    }
                    SocketChannel one = (SocketChannel) key.channel();
                    ByteBuffer buffer = (ByteBuffer) key.attachment();
                    if (key.isReadable() && one.read(buffer) < 0) { one.close(); continue; }
                    buffer.flip();
                    one.write(buffer);
                    buffer.compact();
                    key.interestOps((buffer.hasRemaining() ? SelectionKey.OP_READ : 0)
                        | (buffer.position() > 0 ? SelectionKey.OP_WRITE : 0));
                }
            }
        });
        List<SocketChannel> channels = new ArrayList<>();
        for (int i = 0; i < clients; i++) channels.add(SocketChannel.open(new InetSocketAddress(HERE, port)));
        int right = 0;
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < clients; i++) {
                SocketChannel channel = channels.get(i);
                byte[] sent = pattern(length, i);
                ByteBuffer out = ByteBuffer.wrap(sent), in = ByteBuffer.allocate(length);
                start(() -> { while (out.hasRemaining()) channel.write(out); });
                while (in.hasRemaining() && channel.read(in) >= 0) { }
                right += Arrays.equals(sent, in.array()) ? 1 : 0;
            }
        }
        for (SocketChannel channel : channels) channel.close();
        System.out.println("selector " + right);
        try (FileChannel file = FileChannel.open(java.nio.file.Path.of("Net.java"));
             SocketChannel channel = SocketChannel.open(new InetSocketAddress(HERE, port))) {
            long moved = file.transferTo(0, 4000, channel);
            ByteBuffer in = ByteBuffer.allocate(4000);
            while (in.hasRemaining()) channel.read(in);
            System.out.println("transferred " + moved + " " + new String(in.array(), 0, 6));
        }
    }

    static void datagrams() throws Exception {
        try (DatagramSocket a = new DatagramSocket(0, HERE); DatagramSocket b = new DatagramSocket(0, HERE)) {
            a.setSoTimeout(2000); b.setSoTimeout(50);
            byte[] sent = pattern(20000, 1);
            b.send(new DatagramPacket(sent, sent.length, HERE, a.getLocalPort()));
            DatagramPacket got = new DatagramPacket(new byte[30000], 30000);
            a.receive(got);
            System.out.println("datagram " + got.getLength() + " " + (got.getPort() == b.getLocalPort()));
            try { b.receive(got); } catch (SocketTimeoutException error) { System.out.println(error.getMessage()); }
        }
        DatagramChannel a = DatagramChannel.open(StandardProtocolFamily.INET6).bind(new InetSocketAddress("::1", 0));
        DatagramChannel b = DatagramChannel.open(StandardProtocolFamily.INET6).connect(a.getLocalAddress());
        b.write(ByteBuffer.wrap("six".getBytes()));
        ByteBuffer in = ByteBuffer.allocate(10);
        System.out.println(a.receive(in).equals(b.getLocalAddress()) + " " + new String(in.array(), 0, in.position()));
    }

    static void pages() throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(HERE, 0), 50);
        server.createContext("/", exchange -> {
            byte[] asked = exchange.getRequestBody().readAllBytes();
            byte[] page = (exchange.getRequestMethod() + " " + exchange.getRequestURI() + " " + asked.length).getBytes();
            exchange.sendResponseHeaders(exchange.getRequestURI().getPath().equals("/no") ? 404 : 200, page.length);
            try (OutputStream out = exchange.getResponseBody()) { out.write(page); }
        });
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
        String base = "http://127.0.0.1:" + server.getAddress().getPort();
        HttpClient client = HttpClient.newHttpClient();
        List<CompletableFuture<HttpResponse<String>>> asked = IntStream.range(0, 100).mapToObj(i ->
            client.sendAsync(HttpRequest.newBuilder(URI.create(base + "/" + i)).build(), HttpResponse.BodyHandlers.ofString()))
            .collect(Collectors.toList());
        int right = 0;
        for (int i = 0; i < 100; i++) right += asked.get(i).get().body().equals("GET /" + i + " 0") ? 1 : 0;
        System.out.println("pages " + right);
        HttpResponse<String> answer = client.send(HttpRequest.newBuilder(URI.create(base + "/no"))
            .POST(HttpRequest.BodyPublishers.ofByteArray(pattern(100000, 1))).build(), HttpResponse.BodyHandlers.ofString());
        System.out.println(answer.statusCode() + " " + answer.body());
        server.stop(0);
    }

    public static void main(String[] words) throws Exception {
        sockets();
        selector();
        datagrams();
        pages();
        System.out.println(InetAddress.getByName("localhost").isLoopbackAddress());
        System.out.println(NetworkInterface.getByName("lo").isLoopback() + " " + NetworkInterface.getByName("lo").isUp());
        System.exit(0);
    }
}
END_OF_PROGRAM
ecj -17 -nowarn -proc:none -d . Net.java && java -Xmx256m -cp . Net
