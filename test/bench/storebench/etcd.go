// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package storebench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// startEtcd runs etcd on free loopback ports, with the durability it has by
// default, and waits until it answers. stop ends that process and waits for it.
func startEtcd(ctx context.Context, path, dir string) (endpoint string, stop func() error, err error) {
	client, err := freePort()
	if err != nil {
		return "", nil, err
	}
	peer, err := freePort()
	if err != nil {
		return "", nil, err
	}
	endpoint = "http://" + client
	cmd := exec.CommandContext(ctx, path,
		"--data-dir", dir, "--name", "bench", "--log-level", "fatal", // it logs its own shutdown as an error
		"--listen-client-urls", endpoint, "--advertise-client-urls", endpoint,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
		"--initial-cluster", "bench=http://"+peer,
		"--quota-backend-bytes", "8589934592", // room for all rows; does not affect durability
	)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start etcd: %w", err)
	}
	stop = func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) { // the signal ends it
			return err
		}
		return nil
	}
	if err := awaitHealth(ctx, endpoint+"/health"); err != nil {
		return "", nil, errors.Join(err, stop())
	}
	return endpoint, stop, nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func awaitHealth(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			if err := resp.Body.Close(); err != nil {
				return err
			}
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("etcd did not answer: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
