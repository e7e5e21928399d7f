// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/redact"
)

// secrets holds the values that must not leave the worker, in addition to those that redaction
// recognises by their form: those that the worker was given, and those that were removed from what the run said before.
type secrets struct {
	seen redact.Seen
	// shown names the values that the worker was given and cannot remove, because they are too short or too common.
	shown []string
}

func secretsOf(c *Config) *secrets {
	s := &secrets{}
	var values []string
	add := func(name, v string) {
		values = append(values, v)
		if strings.TrimSpace(v) != "" && !redact.Hidable(v) {
			s.shown = append(s.shown, name)
		}
	}
	add("the worker's token", c.Credentials.Token)
	add("the key of the search service", c.Credentials.SearchKey)
	add("the credential of the repository", c.Credentials.RepositoryToken)
	add("the controller token of the runtime", strings.TrimSpace(c.Credentials.RuntimeToken))
	add("the operation key of the runtime", strings.TrimSpace(c.Credentials.RuntimeKey))
	add("the transaction token", c.Credentials.TransactionToken)
	for _, set := range []struct {
		what   string
		values map[string]string
	}{
		{"the key of Provider %s", c.Credentials.ProviderKeys}, {"the credential of Tool %s", c.Credentials.ToolKeys}, {"the variable %s", c.Credentials.Env},
	} {
		for _, name := range slices.Sorted(maps.Keys(set.values)) {
			add(fmt.Sprintf(set.what, name), set.values[name])
		}
	}
	for _, dir := range c.SecretDirs {
		files := map[string]string{}
		if err := readTree(dir, "", files); err != nil {
			continue // what the worker cannot read, its programs cannot read either
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			add("the file "+dir+"/"+name, files[name])
		}
	}
	s.seen.Known = redact.KnownOf(values...)
	return s
}

// scrub removes the values from a text.
func (s *secrets) scrub(text string) string { return s.seen.Remove(text) }

// warning says which values the run's events and log may show; empty for none.
func (s *secrets) warning() string {
	if len(s.shown) == 0 {
		return ""
	}
	return "too short or too common to be removed from events, log and result: the value of " + strings.Join(s.shown, ", ")
}

// in returns what a JSON text contains of the values, of their lines, and of what was removed before.
func (s *secrets) in(text []byte) []string {
	all := s.seen.Known.In(string(text))
	for _, v := range redact.KnownOf(s.seen.Values()...).In(string(text)) {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}
