#!/bin/sh
# PACKAGE0033 default-jre-headless: compiles a class with ecj and runs it: threads, streams, files, processes
which java
java -version 2>&1 | sed 's/[0-9].*//;q'
cat >Program.java <<'END'
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;

public class Program {
    record Point(int x, int y) {}
    public static void main(String[] arguments) throws Exception {
        System.out.println(new Point(1, 2) + " " + String.join(",", arguments));
        System.out.println(IntStream.rangeClosed(1, 100).parallel().sum());
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Integer>> all = new ArrayList<>();
        for (int n = 0; n < 5; n++) { int m = n; all.add(pool.submit(() -> m * m)); }
        for (Future<Integer> one : all) System.out.print(one.get() + " ");
        pool.shutdown();
        System.out.println(pool.awaitTermination(10, TimeUnit.SECONDS));
        Files.writeString(Path.of("x"), "text\n".repeat(1000));
        System.out.println(Files.size(Path.of("x")) + " " + Files.lines(Path.of("x")).distinct().count());
        Process process = new ProcessBuilder("sh", "-c", "echo from a shell; exit 3").start();
        System.out.print(new String(process.getInputStream().readAllBytes()));
        System.out.println(process.waitFor());
        byte[][] garbage = new byte[16][];
        for (int n = 0; n < 500; n++) garbage[n % 16] = new byte[100000];
        try { Object o = "s"; Integer i = (Integer) o; } catch (ClassCastException e) { System.out.println("caught"); }
        try { recurse(1); } catch (StackOverflowError e) { System.out.println("deep"); }
        System.out.println(new java.math.BigInteger("2").pow(100));
        System.exit(5);
    }
    static int recurse(int n) { return recurse(n + 1) + 1; }
}
END
ecj -17 -d . Program.java && java -Xmx64m -cp . Program a b
echo "status $?"
java -cp . Nothing 2>&1 | head -1
