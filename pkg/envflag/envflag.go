// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package envflag binds settings to flags whose defaults are in environment variables of the same name.
package envflag

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
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
	s.DurationVar(p, name, parsed(s, name, value, time.ParseDuration, "a duration such as 5s"), usage)
}

// Bool binds a switch.
func (s *Set) Bool(p *bool, name string, value bool, usage string) {
	s.BoolVar(p, name, parsed(s, name, value, strconv.ParseBool, "true or false"), usage)
}

// Int binds a number.
func (s *Set) Int(p *int, name string, value int, usage string) {
	s.IntVar(p, name, parsed(s, name, value, strconv.Atoi, "a number"), usage)
}

// Int64 binds a number.
func (s *Set) Int64(p *int64, name string, value int64, usage string) {
	parse := func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }
	s.Int64Var(p, name, parsed(s, name, value, parse, "a number"), usage)
}

// parsed returns the default of a flag: that of the variable, if it is set and valid, otherwise value.
func parsed[T any](s *Set, name string, value T, parse func(string) (T, error), what string) T {
	e := os.Getenv(Variable(name))
	if e == "" {
		return value
	}
	v, err := parse(e)
	if err != nil {
		s.Invalid = append(s.Invalid, fmt.Errorf("%s: %q: must be %s", Variable(name), e, what))
		return value
	}
	return v
}

// Check reports variables that hold no value of their flag.
func (s *Set) Check() error { return errors.Join(s.Invalid...) }
