// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"testing"

	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"

	"github.com/platform-ai/platform/pkg/server/expression"
)

// What fits the limits is answered as Kubernetes answers it.
func TestAnswers(t *testing.T) {
	t.Parallel()
	all := []string{
		"'abc'.replace('b', 'xx') == 'axxc'", "'aaa'.replace('a', 'b', 2) == 'bba'", "'ab'.replace('', '-') == '-a-b-'",
		"'a,b'.split(',') == ['a', 'b']", "'a,b,c'.split(',', 2) == ['a', 'b,c']", "['x', 'y'].join() == 'xy'",
		"['x', 'y'].map(a, a + '!').join(',') == 'x!,y!'", "'%s %d %.2f'.format(['a', 3, 1.5]) == 'a 3 1.50'",
		"'%s'.format([['a', 'b']]).contains('b')", "[1, 2] + [3] == [1, 2, 3]", "dyn('a') + 'b' == 'ab'", "1 + 2 == 3", "b'a' + b'b' == b'ab'",
		"duration('1s') + duration('1s') == duration('2s')", "'a' in ['a', 'b']", "!('z' in [object.data.s, object.data.p])", "'s' in object.data",
		"[[1]] == [[1]]", "[[1]] != [[2]]", "{'a': 1} == {'a': dyn(1.0)}", "!(dyn(1) == '1')", "optional.of([1]) == optional.of([1])",
		"'abc'.findAll('[a-c]') == ['a', 'b', 'c']", "'abc'.findAll('[a-c]', 2) == ['a', 'b']", "'abc'.findAll(object.data.p, 0).size() == 0",
		"'abc'.findAll(object.data.p) == ['b']", "'abc'.find(object.data.p) == 'b'", "'abc'.matches(object.data.p)", "'a1'.matches('^[a-z][0-9]$')",
		"lists.range(3) == [0, 1, 2]", "[3, 1, 2].sort() == [1, 2, 3]", "['bb', 'a'].sortBy(x, size(x)) == ['a', 'bb']", "[1, 1, 2].distinct() == [1, 2]",
		"[[1], [2]].flatten() == [1, 2]", "[1, 2, 3].slice(1, 2) == [2]", "[1, 2].reverse() == [2, 1]", "[1, 2, 3].indexOf(2) == 1", "'abc'.indexOf('c') == 2",
		"sets.contains([1, 2], [1])", "sets.equivalent([1, 2], [2, 1])", "[1, 2].sum() == 3", "[1, 2].max() == 2", "[1, 2].isSorted()",
		"{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}", "quantity('1Gi').isGreaterThan(quantity('1Mi'))", "url('https://a/b').getHost() == 'a'",
		"'Ab'.lowerAscii() + 'Ab'.upperAscii() == 'abAB'", "'abc'.substring(1) + 'abc'.charAt(0) == 'bca'", "string(1) + string(b'a') == '1a'",
		"object.data.s.contains('text')", "size(object.data.s + object.data.s) == 12", "object.metadata.name + object.data.p == 'cb'",
		"semver('1.2.3').isLessThan(semver('1.3.0'))", "strings.quote('a') == '\"a\"'", "variables.v0 + variables.v1 == 'a texttext some'",
	}
	for _, rule := range all {
		v := expression.Compile(policy(rule, "object.data.s", "'text some'"))
		if d := judge(t, v, map[string]string{"s": "a text", "p": "b"}); d.Evaluation != validating.EvalAdmit {
			t.Errorf("%s: %s", rule, d.Message)
		}
	}
}
