// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package canonical

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{"b":1,"a":[true,null,"x"]}`, `{"a":[true,null,"x"],"b":1}`},
		{` { "a" : 1.0 } `, `{"a":1}`},
		{`[1e2,100,10E+1,-0,0.0,-1.50,12345678901234567890123]`, `[100,100,100,0,0,-1.5,1.2345678901234567890123e+22]`},
		{`[1e20,1e21,1e-6,1e-7,0.00001234,123.456e-10]`, `[100000000000000000000,1e+21,0.000001,1e-7,0.00001234,1.23456e-8]`},
		{`[9007199254740993,9007199254740992]`, `[9007199254740993,9007199254740992]`},
		{`"<a>&\u00e9\/\u001f\n\u2028\ud83d\ude00"`, "\"<a>&é/\\u001f\\n\u2028😀\""},
		{`{"\ufb33":1,"\ud83d\ude00":2}`, `{"😀":2,"` + "\ufb33" + `":1}`},
		{`{}`, `{}`},
		{`[]`, `[]`},
		{`null`, `null`},
		{`"\\ud800"`, `"\\ud800"`},
	} {
		got, err := Form([]byte(tc.in))
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: got %s, %v; want %s", tc.in, got, err, tc.want)
		}
		again, err := Form(got)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: canonical form changes: %s, %v", tc.in, again, err)
		}
	}
	for _, bad := range []string{``, `{`, `{} {}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `[{"x":{"y":1,"y":1}}]`, `"\ud800"`, `"\ud800\u0041"`, `"\udc00"`, "\"\xff\"", `1e99999999999`} {
		if d, err := Form([]byte(bad)); !errors.Is(err, ErrNone) {
			t.Errorf("%q: %q %v", bad, d, err)
		}
	}
}

func FuzzForm(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.50e3,"x\u00e9"]}`, `-0.00010e+5`, `"\ud83d\ude00"`, `{"":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := Form(raw)
		if err != nil {
			return
		}
		if !json.Valid(c) {
			t.Fatalf("%q becomes %q", raw, c)
		}
		if again, err := Form(c); err != nil || string(again) != string(c) {
			t.Fatalf("%q becomes %q, then %q, %v", raw, c, again, err)
		}
	})
}

func TestEqual(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":"<"}`, `{ "b": "\u003c", "a": 1.0 }`, true},
		{`1972435959496572929`, `1972435959496573000`, false},
		{`{"a":null}`, `{}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`{"a":1,"a":1}`, `{"a":1}`, false},
		{``, ``, true},
	} {
		if got := Equal([]byte(tc.a), []byte(tc.b)); got != tc.want {
			t.Errorf("%s and %s: %v", tc.a, tc.b, got)
		}
	}
}

// Numbers finds what no double holds, wherever it is, and nothing else.
func TestNumbers(t *testing.T) {
	digits := strings.Repeat("9", 400)
	for in, want := range map[string]string{
		`{"k":1e400}`:                 "k: the number 1e400 is out of range",
		`{"a":[{"b":-1E+309}]}`:       "a.0.b: the number -1E+309",
		`[0,` + digits + `]`:          "1: the number 999",
		`-` + digits + `.5`:           "the number -999",
		`{"\\":"\"","x":{"y":2e308}}`: "x.y: the number 2e308",
		`{"k":1e308,"s":"1e400","l":-1.7976931348623157e308}`:       "",
		`{"s":"\\\"1e400","id":1972435959496572929,"small":1e-400}`: "",
		`0.` + digits: "",
	} {
		err := Check([]byte(in))
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", in, err, want)
		}
	}
}

func FuzzNumbers(f *testing.F) {
	for _, s := range []string{`{"k":1e400}`, `["\"1e400",1e400]`, `-0.00010e+5`, `[1e308,"\\"]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		var v any
		if err := json.Unmarshal(raw, &v); (err == nil) != (Numbers(raw) == nil) {
			t.Fatalf("%q: %v, but Unmarshal says %v", raw, Numbers(raw), err)
		}
	})
}
