// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// program is a command whose short flags carry secrets.
type program uint8

const (
	noProgram program = iota
	curl              // -u user:password, -b cookies
	login             // docker login -p password
	mysql             // -ppassword
	sshpass           // -p password
	redis             // -a password
	capitalP          // -P password: zip, sqlcmd
	bind              // -w password: ldapsearch
	archive           // -ppassword: 7z
	machine           // an entry of a .netrc file: login name password secret
	setter            // set API_KEY value
)

// programs holds the names of programs by their last byte.
var programs = map[byte][]struct {
	name string
	program
}{
	'l': {{"curl", curl}, {"mysql", mysql}},
	'p': {{"mysqldump", mysql}, {"http", curl}, {"zip", capitalP}, {"bcp", capitalP}, {"mariadb-dump", mysql}},
	'n': {{"mysqladmin", mysql}, {"login", login}},
	's': {{"sshpass", sshpass}},
	'b': {{"mariadb", mysql}},
	'o': {{"mongo", login}},
	'h': {{"mongosh", login}, {"ldapsearch", bind}},
	'd': {{"sqlcmd", capitalP}, {"ldapadd", bind}},
	'y': {{"ldapmodify", bind}},
	'z': {{"7z", archive}},
	'i': {{"redis-cli", redis}},
	'e': {{"machine", machine}},
	't': {{"default", machine}, {"set", setter}},
	'x': {{"setx", setter}},
	'V': {{"ENV", setter}},
}

// reach is how far the arguments of a program are assumed to extend, in bytes.
const reach = 1024

// afterWord calls the matchers of a blank at i, which look at the word before it.
func (x *scanner) afterWord(i int) int {
	s := x.s
	if end := verbEnd(s, i+1); end > 0 {
		return x.plain(i, end)
	}
	if i < 2 {
		return 0
	}
	if x.setting > 0 && i-x.setting < 2*keyLimit {
		if end := x.setTo(i); end != 0 {
			return end
		}
	}
	switch s[i-1] {
	case 'l', 'L':
		if end := x.unsealed(i); end != 0 {
			return end
		}
	case 'r', 'R', 'c', 'C':
		return x.scheme(i)
	case 'd', 'D':
		if end := x.netrc(i); end != 0 {
			return end
		}
		if end := x.declared(i); end != 0 {
			return end
		}
	case 'g', 'G':
		if end := x.secureString(i); end != 0 {
			return end
		}
	case 'y', 'Y':
		if end := x.identified(i); end != 0 {
			return end
		}
	}
	switch s[i-1] {
	case 'l', 'p', 'n', 's', 'i', 'e', 't', 'x', 'V', 'b', 'o', 'h', 'd', 'y', 'z':
		x.begun(i)
	}
	return 0
}

// verbEnd returns the end of the word "is" at i, or of ist, es or est, if a blank or a colon follows; otherwise 0.
func verbEnd(s string, i int) int {
	if i+2 >= len(s) || s[i+1]|0x20 != 's' || s[i]|0x20 != 'i' && s[i]|0x20 != 'e' {
		return 0
	}
	end := i + 2
	if s[end]|0x20 == 't' {
		end++
	}
	if end >= len(s) || !is(s[end], blank) && s[end] != ':' {
		return 0
	}
	return end
}

// begun notes a program whose name ends at i.
func (x *scanner) begun(i int) {
	for _, p := range programs[x.s[i-1]] {
		from := i - len(p.name)
		if from < x.done || x.s[from:i] != p.name || !x.boundary(from) {
			continue
		}
		if p.program == setter {
			x.setting = i
		} else if p.program != login || x.command != machine || i-x.commandAt > reach {
			x.command, x.commandAt = p.program, i
		}
	}
}

// unsealed matches "operator unseal KEY", a command of Vault and OpenBao; the blank after the words is at i.
func (x *scanner) unsealed(i int) int {
	s := x.s
	const words = "operator unseal"
	if i < len(words) || !strings.EqualFold(s[i-len(words):i], words) {
		return 0
	}
	v, ok := x.value(i, run(s, i, blank), false)
	if !ok || v.to-v.from < 16 || !irregular(s[v.from:v.to]) {
		return 0
	}
	return x.remove(v.from, v.to)
}

// netrc matches "login NAME password VALUE"; the blank after "password" is at i.
func (x *scanner) netrc(i int) int {
	s := x.s
	const word = "password"
	if x.command != machine || i-x.commandAt > reach || i < len(word) || s[i-len(word):i] != word {
		return 0
	}
	fields := strings.FieldsFunc(s[x.commandAt:i-len(word)], func(r rune) bool { return r <= ' ' || r == '+' || r == '>' })
	if n := len(fields); n < 2 || fields[n-2] != "login" && !strings.HasSuffix(fields[n-2], `\nlogin`) {
		return 0
	}
	from := run(s, i, blank|lineEnd)
	to := from
	for to < len(s) && !is(s[to], blank|lineEnd) {
		to++
	}
	if to == from || commonWords[s[from:to]] {
		return 0
	}
	return x.remove(from, to)
}

// setTo matches "set API_KEY VALUE" and similar commands; the blank after the name is at i. The name must
// be that of a variable, and the value must not be a plain word.
func (x *scanner) setTo(i int) int {
	s := x.s
	from := x.back(i, keyLimit, keyByte)
	if from <= x.setting || strings.IndexByte(s[from:i], '_') < 0 || keyKind(s[from:i]) < secretValue {
		return 0
	}
	x.setting = 0
	v, ok := x.value(i, run(s, i, blank), false)
	if !ok || !irregular(s[v.from:v.to]) || x.exempt(secretValue, "", s[v.from:v.to], true) {
		return 0
	}
	return x.remove(v.from, v.to)
}

// shortFlag matches "-u name:password" and similar flags among the arguments of a program; the dash is at
// i.
func (x *scanner) shortFlag(i int) int {
	s := x.s
	if x.command == noProgram || i-x.commandAt > reach || i+3 > len(s) || i == 0 || !is(s[i-1], blank|lineEnd) && !isQuote(s[i-1]) {
		return 0
	}
	flag, k := s[i:i+2], i+2
	for _, long := range [...]string{"--user", "--proxy-user", "--auth"} {
		if rest := s[i:]; strings.HasPrefix(rest, long) && len(rest) > len(long) && (is(rest[len(long)], blank) || rest[len(long)] == '=') {
			flag, k = "-u", i+len(long)+1
		}
	}
	k = run(s, k, blank)
	_, n := quoteAt(s, k)
	from, to := k+n, 0
	if n > 0 {
		to = closing(s, from, s[from-1], n)
	} else {
		to = unquotedEnd(s, min(from, len(s)))
	}
	if from >= to {
		return 0
	}
	v := s[from:to]
	switch {
	case x.command == curl && (flag == "-u" || flag == "-U" || flag == "-a"):
		return x.userInfo(from, to)
	case x.command == curl && flag == "-b" && strings.IndexByte(v, '=') > 0,
		(x.command == login || x.command == sshpass) && flag == "-p" && is(s[i+2], blank),
		x.command == redis && flag == "-a",
		x.command == capitalP && flag == "-P" && is(s[i+2], blank),
		x.command == bind && flag == "-w" && is(s[i+2], blank),
		x.command == archive && flag == "-p" && !is(s[i+2], blank),
		x.command == mysql && flag == "-p" && !is(s[i+2], blank):
		if !x.exempt(secretValue, "", v, n == 0) {
			return x.remove(from, to)
		}
	}
	return 0
}

// userInfo removes the password of s[from:to], which is name:password.
func (x *scanner) userInfo(from, to int) int {
	v := x.s[from:to]
	colon := strings.IndexByte(v, ':')
	if colon < 0 || colon+1 == len(v) || x.exempt(secretValue, "", v[colon+1:], false) || isNumber(v[colon+1:]) && isNumber(v[:colon]) {
		return 0
	}
	return x.remove(from+colon+1, to)
}

// dataSource matches a database address in source code, name:password@tcp(…; the at sign is at i.
func (x *scanner) dataSource(i int) int {
	s := x.s
	if !strings.HasPrefix(s[i:], "@tcp(") && !strings.HasPrefix(s[i:], "@unix(") {
		return 0
	}
	from := i
	for low := max(x.done, i-256); from > low && !is(s[from-1], blank|lineEnd) && !isQuote(s[from-1]); from-- {
	}
	if colon := strings.IndexByte(s[from:i], ':'); colon >= 0 {
		return x.remove(from+colon+1, i)
	}
	return 0
}

// passFile matches a line of a password file of PostgreSQL,
// host:port:database:name:password; its first colon is at i.
func (x *scanner) passFile(i int) int {
	s := x.s
	port := run(s, i+1, digit)
	switch s[i+1 : port] {
	case "5432", "5433", "6432":
	default:
		return 0
	}
	k := port
	for range 2 {
		if k >= len(s) || s[k] != ':' {
			return 0
		}
		end := run(s, k+1, keyByte)
		if end < len(s) && s[end] == '*' {
			end++
		}
		if end == k+1 {
			return 0
		}
		k = end
	}
	if k >= len(s) || s[k] != ':' {
		return 0
	}
	to := k + 1
	for to < len(s) && !is(s[to], blank|lineEnd) && !isQuote(s[to]) {
		to++
	}
	if to == k+1 {
		return 0
	}
	return x.remove(k+1, to)
}
