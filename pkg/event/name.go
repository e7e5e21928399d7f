// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// seqDigits is the minimum number of digits of a sequence number in a name. With ten digits, names sort in
// sequence order up to 10^10 events.
const seqDigits = 10

// ErrName is returned for a string that is not the name of an event.
var ErrName = errors.New(`the name must be "<task>.<sequence, 10 digits>"`)

// Name returns the object name of the event at seq of a task's stream.
func Name(task string, seq int64) string { return string(AppendName(nil, task, seq)) }

// AppendName appends the result of Name to b.
func AppendName(b []byte, task string, seq int64) []byte {
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], seq, 10)
	b = append(append(b, task...), '.')
	for range seqDigits - len(d) {
		b = append(b, '0')
	}
	return append(b, d...)
}

// ParseName is the inverse of Name: it returns the task and the sequence number in name. Task names may
// contain dots.
func ParseName(name string) (task string, seq int64, err error) {
	dot := strings.LastIndexByte(name, '.')
	if dot < 1 {
		return "", 0, ErrName
	}
	digits := name[dot+1:]
	if len(digits) < seqDigits || len(digits) > seqDigits && digits[0] == '0' {
		return "", 0, ErrName
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return "", 0, ErrName
	}
	return name[:dot], int64(n), nil
}
