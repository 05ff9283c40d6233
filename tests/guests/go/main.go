// A Go program that tests run as a guest: its run-time uses threads, futexes, signals and epoll in its own way.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "panic" {
		panic("deliberate")
	}
	if len(os.Args) > 1 && os.Args[1] == "network" {
		streams()
		pages()
		datagrams()
		deadlines()
		return
	}
	goroutines()
	channels()
	timers()
	files()
	processes()
	signals()
	garbage()
	os.Exit(11)
}

func must(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func goroutines() {
	var group sync.WaitGroup
	var mutex sync.Mutex
	var counter, atomicCounter int64
	for i := 0; i < 1000; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := 0; n < 100; n++ {
				mutex.Lock()
				counter++
				mutex.Unlock()
				atomic.AddInt64(&atomicCounter, 1)
				if n%10 == 0 {
					runtime.Gosched()
				}
			}
		}()
	}
	group.Wait()
	fmt.Println("goroutines", counter, atomicCounter)
}

func channels() {
	numbers, squares := make(chan int), make(chan int, 8)
	go func() {
		defer close(numbers)
		for i := 1; i <= 1000; i++ {
			numbers <- i
		}
	}()
	var group sync.WaitGroup
	for worker := 0; worker < 4; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := range numbers {
				squares <- n * n
			}
		}()
	}
	go func() { group.Wait(); close(squares) }()
	sum := 0
	for square := range squares {
		sum += square
	}
	fmt.Println("channels", sum)
}

func timers() {
	start := time.Now()
	ticker := time.NewTicker(2 * time.Millisecond)
	for i := 0; i < 5; i++ {
		<-ticker.C
	}
	ticker.Stop()
	withDeadline, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	<-withDeadline.Done()
	fmt.Println("timers", time.Since(start) >= 10*time.Millisecond, errors.Is(withDeadline.Err(), context.DeadlineExceeded))
}

func files() {
	must(os.MkdirAll("go/a/b", 0o755))
	file, err := os.Create("go/a/b/file")
	must(err)
	writer := bufio.NewWriter(file)
	for i := 0; i < 10000; i++ {
		fmt.Fprintln(writer, "line", i)
	}
	must(writer.Flush())
	must(file.Close())
	content, err := os.ReadFile("go/a/b/file")
	must(err)
	fmt.Printf("files %d %x", len(content), sha256.Sum256(content))
	_, err = os.Open("go/missing")
	fmt.Println("", errors.Is(err, os.ErrNotExist))
	must(os.Rename("go/a/b/file", "go/moved"))
	must(os.Symlink("moved", "go/link"))
	entries, err := os.ReadDir("go")
	must(err)
	for _, entry := range entries {
		fmt.Print(entry.Name(), " ", entry.Type(), "; ")
	}
	fmt.Println()
	must(os.RemoveAll("go"))
	reader, pipe, err := os.Pipe()
	must(err)
	go func() { io.WriteString(pipe, strings.Repeat("pipe ", 20000)); pipe.Close() }()
	all, err := io.ReadAll(reader)
	must(err)
	fmt.Println("pipe", len(all))
}

func processes() {
	output, err := exec.Command("/bin/sh", "-c", "echo from a shell; cat; exit 3").CombinedOutput()
	var failed *exec.ExitError
	fmt.Printf("process %q %v\n", output, errors.As(err, &failed) && failed.ExitCode() == 3)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	fmt.Println("killed", exec.CommandContext(ctx, "/bin/sleep", "60").Run())
}

func signals() {
	received := make(chan os.Signal, 16)
	signal.Notify(received, syscall.SIGUSR1, syscall.SIGUSR2)
	must(syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	must(syscall.Kill(os.Getpid(), syscall.SIGUSR2))
	names := []string{(<-received).String(), (<-received).String()}
	sort.Strings(names)
	fmt.Println("signals", names)
	func() {
		defer func() { fmt.Println("recovered:", recover()) }()
		var nothing *int
		fmt.Println(*nothing)
	}()
}

func garbage() {
	kept := map[int][]byte{}
	for i := 0; i < 20000; i++ {
		kept[i%100] = make([]byte, 4096)
	}
	runtime.GC()
	var statistics runtime.MemStats
	runtime.ReadMemStats(&statistics)
	fmt.Println("garbage", len(kept), statistics.NumGC > 0, statistics.HeapAlloc < 64<<20)
}
