// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/usage"
)

// The keys of the ledger begin with u. FORMAT.md of package engine lists them.
var (
	timeKey      = []byte("um")
	openPrefix   = []byte("up")
	statePrefix  = []byte("us")
	taskOfPrefix = []byte("uy")
)

// Lengths of parts of keys, in bytes.
const (
	timeLen = 8
	idLen   = 16
)

// after returns the first key after all keys that start with prefix.
func after(prefix []byte) []byte {
	k := bytes.Clone(bytes.TrimRight(prefix, "\xff"))
	k[len(k)-1]++
	return k
}

// idText is an ID as records have it: 32 hexadecimal digits.
func idText(id []byte) string { return hex.EncodeToString(id) }

func idBytes(id string) []byte {
	b, err := hex.DecodeString(id)
	if err != nil || len(b) != idLen {
		return make([]byte, idLen) // an ID that nothing has
	}
	return b
}

// appendTime appends a time so that keys sort by it. Times before 1970 are 1970.
func appendTime(k []byte, t time.Time) []byte {
	n := int64(0)
	if !t.IsZero() {
		n = max(0, t.UnixNano())
	}
	return binary.BigEndian.AppendUint64(k, uint64(n))
}

// appendNewest appends a time so that newer ones sort first.
func appendNewest(k []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(k, ^uint64(max(0, t.UnixNano())))
}

// recordedAt reads the time at the end of a key.
func recordedAt(key []byte) (time.Time, error) {
	if len(key) < timeLen {
		return time.Time{}, fmt.Errorf("corrupt key of the ledger %q", key)
	}
	return time.Unix(0, int64(^binary.BigEndian.Uint64(key[len(key)-timeLen:]))).UTC(), nil
}

// named returns the start of keys of a kind that belong to a name.
func named(kind byte, name string) []byte {
	return append(append([]byte{'u', kind}, name...), 0)
}

// observationKey is the key of all states of an observation.
func observationKey(namespace string, started time.Time, id string) []byte {
	return append(appendTime(named('o', namespace), started), idBytes(id)...)
}

// ofTaskKey is the key of an observation in the index of its task.
func ofTaskKey(o *usage.Observation) []byte {
	return append(appendTime(named('x', o.TaskUID), o.StartedAt), idBytes(o.ID)...)
}

// taskKey is the key of all states of a task.
func taskKey(namespace string, created time.Time, uid string) []byte {
	return append(append(appendTime(named('t', namespace), created), uid...), 0)
}

// taskOfKey is where the key of a task is found by its UID.
func taskOfKey(uid string) []byte { return append(bytes.Clone(taskOfPrefix), uid...) }

// linkKey is the key of all states of a link.
func linkKey(namespace, id string) []byte { return append(append(named('l', namespace), id...), 0) }

// duePrefix is the start of the rows of a repository's links that are not known to be merged, and dueKey the row of one. Those that were
// observed the longest time ago sort first.
func duePrefix(namespace, repository string) []byte {
	sum := sha256.Sum256([]byte(strings.ToLower(repository)))
	return append(named('d', namespace), sum[:idLen]...)
}

func dueKey(l *usage.Link) []byte {
	return append(appendTime(duePrefix(l.Namespace, l.Repository), l.ObservedAt), l.ID...)
}

// stateKey is the key of the state of a task's stream.
func stateKey(uid string) []byte { return append(bytes.Clone(statePrefix), uid...) }

// openKey is the key of an open request of a chat or of a vendor's API.
func openKey(id string) []byte { return append(bytes.Clone(openPrefix), idBytes(id)...) }

// counterKey is the key of the totals of a session counter.
func counterKey(namespace, session, counter string) []byte {
	return append(append(append(named('n', namespace), session...), 0), counter...)
}

// removedKey is the key of the time from which the records of a namespace are complete.
func removedKey(namespace string) []byte { return append([]byte("ur"), namespace...) }
