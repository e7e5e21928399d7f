// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package escape

import (
	"slices"
	"strings"
)

// ways are the kinds of escapes, by the beginning of their names.
const ways = `read /
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
read by a program in memory
read in a user namespace
bind mount over work
change the mode of /
change the mode by a link to
change the mode by a path descriptor of
change the mode in a race of
change the owner of
change the times of
change an attribute of
change the mode of the folder
make a file that runs with the rights of its owner
change the mode of /usr
change the mode of /dev/null
list /
create in
watch /
move work to
move a file to
read /etc/shadow
write to /usr
write to /tmp
write to /dev/shm
set a kernel parameter
choose the next pid
watch all files
type into the terminal
make a device
run with the rights of its owner
read a file that was made later
read /proc/PID/mem
read /proc/PID/environ
list /proc/PID/fd
list all processes
signal
signal the group of
signal by descriptor
trace
read the memory of
write into the memory of
compare with
take a descriptor of
limit
slow down
slow the disk down for
schedule
choose the processors of
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
talk to the hypervisor
use the kernel's ciphers
see packets
set up io_uring
share memory
share semaphores
share a queue
share a queue of POSIX
have privileges
hide from the worker
become another user
read keys of the session
use an inherited descriptor
make a user namespace
make a network namespace
enter a namespace
mount
copy a mount
list mounts
describe a mount
change the root
load a program into the kernel
count events
handle page faults
load a module
load a kernel
load a kernel from a file
read the kernel's log
have a core file written
add a key
restart the machine
set the clock
take a file from another user`

// Missing returns the ways out that the output of Main does not name as denied, without those that the caller knows to be open
// or impossible to try where it is. A test that asserts that nothing is open asserts with this that everything was tried.
func Missing(output string, except ...string) []string {
	var left []string
	for way := range strings.Lines(ways) {
		way = strings.TrimSuffix(way, "\n")
		if !slices.Contains(except, way) && !strings.Contains(output, "\ndenied: "+way) && !strings.HasPrefix(output, "denied: "+way) {
			left = append(left, way)
		}
	}
	return left
}
