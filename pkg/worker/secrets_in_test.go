// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"slices"
	"testing"
)

// What a call's arguments contain of the run's secrets is named to the server: whole values, single lines of them, and what was
// removed from something earlier.
func TestSecretsIn(t *testing.T) {
	t.Parallel()
	const line, typed = "Zk4Qx7Lm2Vb9Rt5Yw8", "Hq3Tn6Pc1Xs8Jd4"
	whole := "first line\n" + line + "\nlast line"
	c := &Config{}
	c.Credentials.Env = map[string]string{"KEY": whole}
	s := secretsOf(c)
	if text, _ := s.seen.Text("password=" + typed); text == "password="+typed {
		t.Fatal("the password was not recognised")
	}
	for name, c := range map[string]struct {
		arguments string
		want      []string
	}{
		"nothing":          {`{"code":"ls"}`, nil},
		"whole":            {`{"code":"first line\n` + line + `\nlast line"}`, []string{whole}},
		"one line":         {`{"code":"echo ` + line + `"}`, []string{line}},
		"was said earlier": {`{"code":"login ` + typed + `"}`, []string{typed}},
	} {
		if got := s.in([]byte(c.arguments)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
