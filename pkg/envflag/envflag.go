// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package envflag binds settings to flags whose defaults are in environment variables of the same name.
package envflag

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Set binds flags of a flag set.
type Set struct {
	*pflag.FlagSet
	// Invalid lists variables that hold no value of their flag. They are reported by Check, because binding cannot fail.
	Invalid []error
}

// Variable returns the name of the environment variable with the default of a flag.
func Variable(flag string) string {
	return "PLATFORM_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Text binds a text.
func (s *Set) Text(p *string, name, value, usage string) {
	if e, ok := os.LookupEnv(Variable(name)); ok {
		value = e
	}
	s.StringVar(p, name, value, usage)
}

// List binds a list of texts that are separated by commas.
func (s *Set) List(p *[]string, name string, value []string, usage string) {
	if e, ok := os.LookupEnv(Variable(name)); ok {
		value = slices.DeleteFunc(strings.Split(e, ","), func(part string) bool { return part == "" })
	}
	s.StringSliceVar(p, name, value, usage)
}

// Duration binds a duration, such as 5s.
func (s *Set) Duration(p *time.Duration, name string, value time.Duration, usage string) {
	if e := os.Getenv(Variable(name)); e != "" {
		d, err := time.ParseDuration(e)
		if err != nil {
			s.Invalid = append(s.Invalid, fmt.Errorf("%s: %q: must be a duration such as 5s", Variable(name), e))
		}
		value = cmp.Or(d, value)
	}
	s.DurationVar(p, name, value, usage)
}

// Check reports variables that hold no value of their flag.
func (s *Set) Check() error { return errors.Join(s.Invalid...) }
