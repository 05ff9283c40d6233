// The same program's connections over the loopback: Go's run-time waits for sockets by epoll.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Fifty connections at the same time, each of which gets back 200000 bytes and the end.
func streams() {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", address)
		must(err)
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					_, _ = io.Copy(connection, connection)
					_ = connection.(*net.TCPConn).CloseWrite()
					_ = connection.Close()
				}()
			}
		}()
		var group sync.WaitGroup
		var right int64
		for i := 0; i < 50; i++ {
			group.Add(1)
			go func(i int) {
				defer group.Done()
				connection, err := net.Dial("tcp", listener.Addr().String())
				must(err)
				sent := bytes.Repeat([]byte{byte(i), byte(i >> 1), 7}, 200000/3)
				go func() {
					_, err := connection.Write(sent)
					must(err)
					must(connection.(*net.TCPConn).CloseWrite())
				}()
				got, err := io.ReadAll(connection)
				must(err)
				if sha256.Sum256(got) == sha256.Sum256(sent) {
					atomic.AddInt64(&right, 1)
				}
				must(connection.Close())
			}(i)
		}
		group.Wait()
		must(listener.Close())
		_, err = net.Dial("tcp", listener.Addr().String())
		fmt.Println("streams", right, errors.Is(err, syscall.ECONNREFUSED))
	}
}

// A server of HTTP and twenty clients that keep their connections.
func pages() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	page := strings.Repeat("page ", 10000)
	var connections int64
	server := http.Server{
		Handler: http.HandlerFunc(func(to http.ResponseWriter, request *http.Request) {
			body, _ := io.ReadAll(request.Body)
			fmt.Fprint(to, request.URL.Path, len(body), page)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				atomic.AddInt64(&connections, 1)
			}
		},
	}
	go func() { _ = server.Serve(listener) }()
	var group sync.WaitGroup
	var right int64
	for i := 0; i < 20; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			client := http.Client{Transport: &http.Transport{}}
			for n := 0; n < 20; n++ {
				answer, err := client.Post(fmt.Sprintf("http://%s/%d/", listener.Addr(), n), "text/plain", strings.NewReader(page))
				must(err)
				body, err := io.ReadAll(answer.Body)
				must(err)
				must(answer.Body.Close())
				if string(body) == fmt.Sprintf("/%d/%d%s", n, len(page), page) {
					atomic.AddInt64(&right, 1)
				}
			}
			client.CloseIdleConnections()
		}()
	}
	group.Wait()
	must(server.Shutdown(context.Background()))
	fmt.Println("pages", right, "over", atomic.LoadInt64(&connections))
}

// Datagrams that come with the addresses of their senders, and one to a port without a socket.
func datagrams() {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(err)
	client, err := net.Dial("udp", server.LocalAddr().String())
	must(err)
	buffer := make([]byte, 70000)
	for _, size := range []int{0, 1, 1472, 9000, 65507} {
		_, err = client.Write(bytes.Repeat([]byte("u"), size))
		must(err)
		length, from, err := server.ReadFrom(buffer)
		must(err)
		fmt.Println("datagram", length, from.String() == client.LocalAddr().String())
	}
	_, err = client.Write(make([]byte, 65508))
	fmt.Println(errors.Is(err, syscall.EMSGSIZE))
	must(server.Close())
	_, err = client.Write([]byte("lost"))
	must(err)
	_, err = client.Read(buffer)
	fmt.Println(errors.Is(err, syscall.ECONNREFUSED))
	must(client.Close())
}

// Reads and accepts that end by their deadline, and a read that ends because another goroutine
// closes the connection.
func deadlines() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	must(listener.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond)))
	_, err = listener.Accept()
	fmt.Println("accept", errors.Is(err, os.ErrDeadlineExceeded))
	connection, err := net.Dial("tcp", listener.Addr().String())
	must(err)
	must(connection.SetReadDeadline(time.Now().Add(50 * time.Millisecond)))
	_, err = connection.Read(make([]byte, 1))
	fmt.Println("read", errors.Is(err, os.ErrDeadlineExceeded))
	must(connection.SetReadDeadline(time.Time{}))
	go func() {
		time.Sleep(50 * time.Millisecond)
		_ = connection.Close()
	}()
	_, err = connection.Read(make([]byte, 1))
	fmt.Println("closed", errors.Is(err, net.ErrClosed))
	must(listener.Close())
}
