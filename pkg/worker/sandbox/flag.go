// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "errors"

// Flag is the operator's flag "--sandbox", which is on or off, as a pflag.Value.
type Flag struct{ Off *bool }

// String returns the value.
func (f Flag) String() string {
	if f.Off != nil && *f.Off {
		return "off"
	}
	return "on"
}

// Set accepts only "on" and "off", so that turning the sandbox off is always explicit.
func (f Flag) Set(s string) error {
	switch s {
	case "on", "off":
		*f.Off = s == "off"
		return nil
	}
	return errors.New("must be on or off")
}

// Type is shown in the help.
func (f Flag) Type() string { return "on|off" }
