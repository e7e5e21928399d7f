// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/redact"
)

// pieces are parts of secrets and of the words around them.
var pieces = []string{
	"\n", " ", "\"", "'", "\\\n", "=", ": ", "--", "_", ".", "https://bob:", "@git.example.com/a.git", "?x=1&token=", "#", "export SERVICE_TOKEN=",
	"password", "name: API_KEY\n", "value: ", "kind: Secret\n", "kind: ConfigMap\n", "data:\n  a: ", "stringData:\n", "curl -u ", "mysql ", "-p", "machine ", "login ",
	"Authorization: Bearer ", "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----\n", "MIIEvQIBADANBgkqhkiG9w0BAQ\n", "ghp_", "sk-ant-", "AKIA",
	"4f8a1c9be27d0f6a4f8a1c9be27d0f6a", "Zm9vYmFyOnBhc3N3b3JkPWh1bnRlcjI=", "hunter2hunter", "$6$salt$", "secret is ", "set ", "xoxb-", "{", "}", "<token>", "</token>", "|",
	strings.Repeat("ordinary words in a line\n", 20), strings.Repeat("ordinary words in a line\n", 60), strings.Repeat("ordinary ", 300), strings.Repeat("ordinary words in a line\n", 200),
}

// FuzzParts tries texts of which only parts are looked at again: the second call looks at all of the result, and finds nothing.
func FuzzParts(f *testing.F) {
	at := map[string]byte{}
	for i, p := range pieces {
		at[p] = byte(i)
	}
	f.Add([]byte{at["export SERVICE_TOKEN="], at["hunter2hunter"], at["\n"], byte(len(pieces) - 1), at["curl -u "], at["hunter2hunter"], at["\n"]})
	f.Add([]byte{at["kind: Secret\n"], at["data:\n  a: "], at["Zm9vYmFyOnBhc3N3b3JkPWh1bnRlcjI="], at["\n"], byte(len(pieces) - 3), at["data:\n  a: "], at["hunter2hunter"]})
	f.Add([]byte{at["export SERVICE_TOKEN="], at["hunter2hunter"], at["\n"], byte(len(pieces) - 1), at["-----BEGIN PRIVATE KEY-----\n"], at["MIIEvQIBADANBgkqhkiG9w0BAQ\n"]})
	f.Fuzz(func(t *testing.T, choices []byte) {
		var s strings.Builder
		for _, c := range choices[:min(len(choices), 200)] {
			s.WriteString(pieces[int(c)%len(pieces)])
		}
		once, _ := redact.Text(s.String())
		if twice, changed := redact.Text(once); changed {
			t.Errorf("%q\nbecame %q\nand then %q", s.String(), once, twice)
		}
	})
}
