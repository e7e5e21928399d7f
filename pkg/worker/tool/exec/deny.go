// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package exec

import "regexp"

// denied is a pattern that matches programs which destroy more than their own files. The list
// guards against common mistakes of models. It does not stop malicious programs; the sandbox
// does.
type denied struct {
	pattern *regexp.Regexp
	reason  string
	// shellOnly patterns are ordinary words in other languages.
	shellOnly bool
}

// command matches where a shell command can begin, with or without sudo.
const command = `(?:^|[\n;&|(` + "`" + `]|\$\(|\bthen\b|\bdo\b)\s*(?:sudo\s+)?`

var deniedPatterns = []denied{
	{
		// rm -rf / , /*, ~, $HOME and the folders that hold a system.
		pattern: regexp.MustCompile(`\brm\s+(?:-[a-zA-Z-]+\s+)*-(?:[a-zA-Z]*[rR][a-zA-Z]*|-recursive)\s+(?:-[a-zA-Z-]+\s+)*["']?` +
			`(?:/|~|\$\{?HOME\}?|/(?:bin|boot|dev|etc|home|lib|lib64|opt|proc|root|sbin|srv|sys|usr|var))/?\*?["']?(?:[\s;&|)"'` + "`" + `]|$)`),
		reason: "it deletes a whole system or home folder",
	},
	{pattern: regexp.MustCompile(`--no-preserve-root`), reason: "it deletes the root folder"},
	{pattern: regexp.MustCompile(`\bmkfs(?:\.\w+)?\s+\S*/dev/`), reason: "it formats a disk"},
	{pattern: regexp.MustCompile(`\bdd\b[^\n;|&]*\bof=/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|mem)`), reason: "it overwrites a disk"},
	{pattern: regexp.MustCompile(`>\s*/dev/(?:sd|hd|vd|xvd|nvme|mmcblk)`), reason: "it overwrites a disk"},
	{pattern: regexp.MustCompile(`\b(?:wipefs|shred)\b[^\n;|&]*\s/dev/`), reason: "it overwrites a disk"},
	{pattern: regexp.MustCompile(`(\w+|:)\s*\(\)\s*\{\s*(?:\w+|:)\s*\|\s*(?:\w+|:)\s*&\s*\}\s*;`), reason: "it is a fork bomb"},
	{
		pattern: regexp.MustCompile(`\b(?:chmod|chown|chgrp)\s+(?:-[a-zA-Z-]+\s+)*-(?:[a-zA-Z]*R[a-zA-Z]*|-recursive)\s+(?:-\S+\s+)*\S+\s+/(?:\s|;|&|\||$|\*)`),
		reason:  "it changes the permissions of the whole system",
	},
	{pattern: regexp.MustCompile(command + `(?:shutdown|reboot|halt|poweroff|init\s+[06])\b`), reason: "it stops the machine", shellOnly: true},
	{pattern: regexp.MustCompile(command + `(?:kill|pkill)\s+(?:-\w+\s+)*-1(?:\s|;|$)`), reason: "it kills all processes", shellOnly: true},
	{pattern: regexp.MustCompile(command + `mv\s+(?:-\w+\s+)*/\*?\s`), reason: "it moves the root folder", shellOnly: true},
	{pattern: regexp.MustCompile(`(?:curl|wget)\b[^\n;|&]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b`), reason: "it runs a program from the network unseen", shellOnly: true},
}

// destructive returns why a program must not be run, or "".
func destructive(code string, shell bool) string {
	for _, d := range deniedPatterns {
		if (shell || !d.shellOnly) && d.pattern.MatchString(code) {
			return d.reason
		}
	}
	return ""
}
