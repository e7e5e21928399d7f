// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// known is a credential that a fixed prefix gives away.
type known struct {
	prefix string
	min    int // characters after the prefix
}

// The prefixes, by their last byte, which is the trigger. Those of sk-, gh?_,
// github_pat_ and xox?- and their lengths are the contract's.
var (
	dashed = []known{
		{"sk-", 20},
		{"xoxb-", 20},
		{"xoxa-", 20},
		{"xoxp-", 20},
		{"xoxr-", 20},
		{"xoxs-", 20},
		{"xoxe-", 20},
		{"xapp-", 20},
		{"glpat-", 20},
		{"gldt-", 20},
		{"glrt-", 20},
		{"pypi-", 40},
		{"pplx-", 40},
		{"xai-", 40},
		{"nvapi-", 40},
		{"tvly-", 20},
		{"sq0csp-", 30},
		{"AGE-SECRET-KEY-", 40},
	}
	underscored = []known{
		{"ghp_", 20},
		{"gho_", 20},
		{"ghu_", 20},
		{"ghs_", 20},
		{"ghr_", 20},
		{"github_pat_", 30},
		{"sk_live_", 16},
		{"sk_test_", 16},
		{"rk_live_", 16},
		{"rk_test_", 16},
		{"npm_", 30},
		{"hf_", 30},
		{"gsk_", 40},
		{"r8_", 30},
		{"dop_v1_", 40},
		{"shpat_", 30},
		{"glsa_", 30},
		{"dckr_pat_", 20},
		{"whsec_", 24},
		{"lin_api_", 30},
		{"sbp_", 40},
		{"figd_", 30},
	}
	dotted = []known{{"hvs.", 20}, {"SG.", 40}, {"ya29.", 20}}
)

// prefixed matches a known prefix whose last byte is at i.
func (x *scanner) prefixed(i int) int {
	s := x.s
	var list []known
	k := wordByte
	switch s[i] {
	case '-':
		list = dashed
	case '_':
		list = underscored
	case '.':
		list, k = dotted, keyByte
	}
	for _, p := range list {
		from := i + 1 - len(p.prefix)
		if from < x.done || s[from] != p.prefix[0] || s[from:i+1] != p.prefix || !x.boundary(from) {
			continue
		}
		to := run(s, i+1, k)
		for k == keyByte && to > i+1 && s[to-1] == '.' {
			to--
		}
		if to-i-1 >= p.min {
			return x.remove(from, to)
		}
	}
	return 0
}

// cloud matches access key ids that start with a capital A at i.
func (x *scanner) cloud(i int) int {
	s := x.s
	if !x.boundary(i) || i > 0 && (s[i-1] == '+' || s[i-1] == '/') {
		return 0
	}
	switch rest := s[i:]; {
	case strings.HasPrefix(rest, "AKIA"), strings.HasPrefix(rest, "ASIA"):
		to := i + 4
		for to < len(s) && (s[to] >= 'A' && s[to] <= 'Z' || s[to] >= '0' && s[to] <= '9') {
			to++
		}
		if to-i == 20 && (to == len(s) || !is(s[to], alnum)) {
			return x.remove(i, to)
		}
	case strings.HasPrefix(rest, "AIza"):
		if to := run(s, i+4, wordByte); to-i >= 35 && to-i <= 45 {
			return x.remove(i, to)
		}
	}
	return 0
}

// jwt matches three base64url parts of which the first begins eyJ (and the
// five of an encrypted token); its first dot is at i.
func (x *scanner) jwt(i int) int {
	s := x.s
	from := x.back(i, i, wordByte)
	k := strings.Index(s[from:i], "eyJ")
	if k < 0 || from+k+6 > i {
		return 0
	}
	second := run(s, i+1, wordByte)
	if second == i+1 || second >= len(s) || s[second] != '.' {
		return 0
	}
	to := run(s, second+1, wordByte)
	if to == second+1 {
		return 0
	}
	for to+1 < len(s) && s[to] == '.' && is(s[to+1], wordByte) {
		to = run(s, to+1, wordByte)
	}
	return x.remove(from+k, to)
}

// pem matches a block that holds a private key; its first dash is at i. A
// block without its end goes as far as it can be key material.
func (x *scanner) pem(i int) int {
	s := x.s
	const begin, dashes, end = "-----BEGIN ", "-----", "-----END "
	head := s[i+len(begin):]
	n := strings.Index(head[:min(len(head), 80)], dashes)
	if n < 0 || !strings.Contains(head[:n], "PRIVATE KEY") && !strings.Contains(head[:n], "SECRET") {
		return 0
	}
	body := i + len(begin) + n + len(dashes)
	if !x.noEnd {
		if e := strings.Index(s[body:], end); e >= 0 {
			to := body + e + len(end)
			if d := strings.Index(s[to:min(len(s), to+80)], dashes); d >= 0 {
				to += d + len(dashes)
			}
			return x.remove(i, to)
		}
		x.noEnd = true
	}
	to := body
	for to < len(s) && (is(s[to], alnum|blank) || strings.IndexByte("+/=\\\r\n:,-", s[to]) >= 0) {
		to++
	}
	return x.remove(i, to)
}
