// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// openBrowser opens an address in the browser of the desktop, if there is one. Every user of a machine can read the
// arguments of its programs, so the browser is given a file, which only its owner can read, that leads to the address.
func openBrowser(ctx context.Context, out io.Writer, address string) (remove func()) {
	program := "xdg-open"
	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "linux":
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return func() {}
		}
	}
	dir, err := os.MkdirTemp("", "platform-console-") // mode 0700
	if err != nil {
		note(out, "platform: no browser was opened: "+err.Error())
		return func() {}
	}
	remove = func() { _ = os.RemoveAll(dir) }
	file := filepath.Join(dir, "open.html")
	page := fmt.Sprintf("<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0;url=%s\"><title>Console</title>", html.EscapeString(address))
	if err = os.WriteFile(file, []byte(page), 0o600); err == nil {
		cmd := exec.CommandContext(context.WithoutCancel(ctx), program, file) // the browser outlives this command
		if err = cmd.Start(); err == nil {
			go func() { _ = cmd.Wait() }() // what became of it is on the screen
		}
	}
	if err != nil {
		note(out, "platform: no browser was opened: "+err.Error())
	}
	return remove
}
