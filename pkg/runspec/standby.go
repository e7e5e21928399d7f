// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runspec

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Assignment makes a worker that stands by the worker of one run. It has no secrets: these follow on standard input as for
// any other worker.
type Assignment struct {
	// Env are the variables of the run, in addition to those with which the worker was started.
	Env map[string]string `json:"env"`
	// Dir is the working folder, and Log the file to which standard output and error are appended from now on.
	Dir string `json:"dir"`
	Log string `json:"log"`
}

// maxAssignment bounds the encoded Assignment, in bytes. It is less than what a pipe takes without a reader.
const maxAssignment = 32 << 10

// WriteTo writes the assignment as its length, in 4 bytes, and JSON, in one write.
func (a Assignment) WriteTo(w io.Writer) (int64, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return 0, fmt.Errorf("assignment: %w", err)
	}
	if len(text) > maxAssignment {
		return 0, fmt.Errorf("assignment: %d bytes, at most %d are allowed", len(text), maxAssignment)
	}
	n, err := w.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
	return int64(n), err
}

// ReadAssignment reads what WriteTo wrote, and no byte after it. It returns io.EOF if there is nothing to read.
func ReadAssignment(r io.Reader) (Assignment, error) {
	var a Assignment
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); errors.Is(err, io.EOF) {
		return a, io.EOF
	} else if err != nil {
		return a, fmt.Errorf("assignment: %w", err)
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxAssignment {
		return a, fmt.Errorf("assignment: %d bytes, at most %d are allowed", n, maxAssignment)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return a, fmt.Errorf("assignment: %w", err)
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("assignment: %w", err)
	}
	return a, nil
}
