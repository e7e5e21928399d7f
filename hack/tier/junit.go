// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
)

// The part of the JUnit format that is read everywhere: https://github.com/testmoapp/junitxml.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Seconds  float64      `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name  string      `xml:"name,attr"`
		Tests int         `xml:"tests,attr"`
		Cases []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Package string     `xml:"classname,attr"`
		Name    string     `xml:"name,attr"`
		Seconds float64    `xml:"time,attr"`
		Skipped *struct{}  `xml:"skipped"`
		Failure *junitText `xml:"failure"`
		Flaky   *junitText `xml:"flakyFailure"` // failed, and passed then: Maven Surefire's element
	}
	junitText struct {
		Text string `xml:",chardata"`
	}
)

// write writes summary.txt and junit.xml.
func (s summary) write(dir string) error {
	suites := junitSuites{Tests: len(s.results), Failures: s.count("fail"), Skipped: s.count("skip"), Seconds: s.took.Seconds()}
	for _, r := range s.results {
		name := r.step + " " + r.pkg
		if n := len(suites.Suites); n == 0 || suites.Suites[n-1].Name != name {
			suites.Suites = append(suites.Suites, junitSuite{Name: name})
		}
		c := junitCase{Package: r.pkg, Name: r.test, Seconds: r.last().elapsed.Seconds()}
		switch text := (&junitText{Text: r.failure()}); {
		case r.last().action == "fail":
			c.Failure = text
		case r.last().action == "skip":
			c.Skipped = &struct{}{}
		case r.secondTry():
			c.Flaky = text
		}
		suite := &suites.Suites[len(suites.Suites)-1]
		suite.Tests++
		suite.Cases = append(suite.Cases, c)
	}
	data, err := xml.MarshalIndent(suites, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "junit.xml"), append([]byte(xml.Header), data...), 0o644); err != nil {
		return err
	}
	var text strings.Builder
	s.print(&text, "")
	return os.WriteFile(filepath.Join(dir, "summary.txt"), []byte(text.String()), 0o644)
}

// failure is the output of the first try that failed.
func (r result) failure() string {
	for _, t := range r.tries {
		if t.action == "fail" {
			return strings.Join(t.output, "")
		}
	}
	return ""
}
