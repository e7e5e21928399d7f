// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package shim

import (
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var order = Order{
	Path: "/bin/sh", Args: []string{"sh", "-c", ""}, Env: []string{"A=1", "B="}, Limits: []Limit{{Resource: 3, Value: 1 << 40}}, Processes: "5",
	Confined: true, SelfRights: 1<<33 | 5, Filter: []syscall.SockFilter{{Code: 0x8006, Jt: 255, Jf: 1, K: 1<<32 - 1}}, NoSockets: true, Closed: []string{"/proc/1"},
}

func TestOrderIsPassedWhole(t *testing.T) {
	for _, want := range []Order{{}, order} {
		got, ok := Decode(want.Encode())
		if d := cmp.Diff(want, got); !ok || d != "" {
			t.Errorf("%v\n%s", ok, d)
		}
	}
}

// TestBrokenOrders: a part of an order is never taken for a whole one, which could lack a part of the sandbox.
func TestBrokenOrders(t *testing.T) {
	whole := order.Encode()
	for n := range whole {
		if o, ok := Decode(whole[:n]); ok {
			t.Errorf("the first %d of %d bytes are taken for %+v", n, len(whole), o)
		}
	}
	if _, ok := Decode(append(whole, 0)); ok {
		t.Error("a longer text is taken for an order")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(order.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, ok := Decode(b); ok {
			if again, ok := Decode(o.Encode()); !ok || cmp.Diff(o, again) != "" {
				t.Errorf("%+v is %+v when passed on", o, again)
			}
		}
	})
}
