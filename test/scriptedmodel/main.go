// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command scriptedmodel is a scripted stand-in for a model vendor, for the
// quick start and for tests. It answers from a file and contains no model.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

func main() {
	listen := pflag.String("listen", "127.0.0.1:0", "address to listen on; port 0 takes a free one")
	file := pflag.String("script", "", "script file, YAML or JSON (required)")
	portFile := pflag.String("port-file", "", "file to write the port to when listening")
	pflag.Parse()
	if *file == "" || pflag.NArg() > 0 {
		pflag.Usage()
		os.Exit(2)
	}
	if err := run(*listen, *file, *portFile); err != nil {
		fmt.Fprintln(os.Stderr, "scriptedmodel:", err)
		os.Exit(1)
	}
}

// run serves the script until a signal comes.
func run(listen, file, portFile string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := script.Load(file)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "scriptedmodel: this is a scripted stand-in, not a model; it answers from %s\n", file)
	fmt.Fprintf(os.Stderr, "scriptedmodel: listening on http://%s/v1\n", l.Addr())
	if portFile != "" {
		if err := writePort(portFile, l.Addr()); err != nil {
			return err
		}
	}
	srv := &http.Server{Handler: script.New(s, os.Stderr), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// writePort writes the port in one step, so that a reader never sees half of it.
func writePort(path string, a net.Addr) error {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return fmt.Errorf("no port in %s", a)
	}
	if err := os.WriteFile(path+".tmp", []byte(strconv.Itoa(tcp.Port)), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
