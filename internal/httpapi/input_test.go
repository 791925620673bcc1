package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// logged is a server's error log, and the server.
func logged(t *testing.T, run func(context.Context, Call) Outcome) (*httptest.Server, *bytes.Buffer) {
	t.Helper()
	var errs bytes.Buffer
	srv := newTest(t, run, nil)
	srv.Config.ErrorLog = log.New(&errs, "", 0)
	return srv, &errs
}

// blocking sends a request as a client does that looks for the answer only when it has
// sent all, and returns the answer.
func blocking(t *testing.T, conn net.Conn, r *bufio.Reader, path, kind string, body []byte) (*http.Response, string) {
	t.Helper()
	_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", path, kind, len(body))
	if err != nil {
		t.Fatal("header:", err)
	}
	if _, err = conn.Write(body); err != nil {
		t.Fatal("body:", err)
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal("answer:", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal("answer:", err)
	}
	return resp, string(b)
}

// TestUnreadBody holds that a body that nobody reads breaks neither the answer nor the
// requests that follow on the connection.
func TestUnreadBody(t *testing.T) {
	srv, errs := logged(t, func(_ context.Context, c Call) Outcome {
		_, err := io.WriteString(c.Stdout, "{}\n")
		if err != nil {
			return failure("Broken")
		}
		return Outcome{}
	})
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	big := bytes.Repeat([]byte("x"), 3<<20)
	for _, tc := range []struct {
		path   string
		body   []byte
		status int
	}{
		{"/v1/vault/make?nosuch=1", []byte("xy"), 400},
		{"/v1/vault/make", []byte("xy"), 200},
		{"/v1/vault/make?nosuch=1", big, 400},
		{"/v1/vault/make?command=x", big, 400}, // without "to"
		{"/v1/vault/make", big, 200},
		{"/v1/vault/make", nil, 200},
	} {
		resp, body := blocking(t, conn, r, tc.path, typeBytes, tc.body)
		if resp.StatusCode != tc.status || resp.Close {
			t.Errorf("%s with %d bytes: %d %s, close %v", tc.path, len(tc.body), resp.StatusCode, body, resp.Close)
		}
	}
	resp, body := blocking(t, conn, r, "/v1/vault/make", typeJSON, bytes.Repeat([]byte(" "), maxBody+1<<20))
	if resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(body, KindTooLarge) {
		t.Errorf("a JSON body that is too large: %d %s", resp.StatusCode, body)
	}
	srv.Close()
	if errs.Len() > 0 {
		t.Errorf("the server says %s", errs)
	}
}

// TestUnendedBody holds that a client that keeps its input open gets its answer, although
// something of the command still reads, and that the connection then closes.
func TestUnendedBody(t *testing.T) {
	read := make(chan error, 1)
	srv, errs := logged(t, func(_ context.Context, c Call) Outcome {
		go func() {
			_, err := io.ReadAll(c.Stdin)
			read <- err
		}()
		time.Sleep(20 * time.Millisecond) // so that it waits in the body
		_, err := io.WriteString(c.Stdout, "{}\n")
		if err != nil {
			return failure("Broken")
		}
		return Outcome{}
	})
	for _, accept := range []string{typeJSON, typeBytes} {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "POST /v1/vault/make HTTP/1.1\r\nHost: x\r\nAccept: %s\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", accept, typeBytes)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(all), "200 OK") || !strings.Contains(string(all), "Connection: close") || !strings.Contains(string(all), "{}") {
			t.Errorf("%s: %q, %v", accept, all, err)
		}
		<-read
	}
	srv.Close()
	if errs.Len() > 0 {
		t.Errorf("the server says %s", errs)
	}
}
