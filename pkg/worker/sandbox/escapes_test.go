// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"strings"
	"testing"
)

// ways are the kinds of escapes that must have been tried and denied, by the beginning of their names.
var ways = strings.Split(`read /
write /
truncate /
truncate by opening
remove
hard link
rename into work
read through a symbolic link
read through a link to its folder
read by way of /proc/self/root
open anew from a path descriptor
open by handle
read after chroot
read in a user namespace
bind mount over work
list /
create in
move work to
move a file to
read /etc/shadow
write to /usr
write to /tmp
write to /dev/shm
set a kernel parameter
make a device
read a file that was made later
read /proc/PID/mem
read /proc/PID/environ
list /proc/PID/fd
list all processes
trace
read the memory of
take a descriptor of
connect to 127.0.0.1
connect to [::1]
connect to @
send to
connect by MPTCP to
connect by TCP fast open to
connect a pair anew to
listen
listen without a port of its own
talk to the kernel by netlink
see packets
set up io_uring
have privileges
become another user
read keys of the session
use an inherited descriptor
make a user namespace
make a network namespace
enter a namespace
mount
copy a mount
change the root
load a program into the kernel
count events
handle page faults
load a module
load a kernel
add a key
restart the machine
set the clock
take a file from another user`, "\n")

// missing returns the ways that the output of the escape program does not name as denied.
func missing(t *testing.T, out string) []string {
	t.Helper()
	var left []string
	for _, way := range ways {
		if !strings.Contains(out, "denied: "+way) {
			left = append(left, way)
		}
	}
	return left
}
