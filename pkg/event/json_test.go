// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// filled returns an event with a value in every field and the same text in all text fields, so that a field
// that is added later and forgotten is noticed.
func filled(t *testing.T, text string) *v1alpha1.ExecutionEvent {
	t.Helper()
	e := &v1alpha1.ExecutionEvent{}
	v := reflect.ValueOf(e).Elem()
	for i := range v.NumField() {
		n := int64(i + 1)
		switch f := v.Field(i); f.Addr().Interface().(type) {
		case *metav1.TypeMeta:
			e.Kind = text
		case *metav1.ObjectMeta:
			e.Name = text
		case *metav1.MicroTime:
			f.Set(reflect.ValueOf(metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 67000, time.FixedZone("x", 3600)))))
		case **apiextensionsv1.JSON:
			f.Set(reflect.ValueOf(&apiextensionsv1.JSON{Raw: []byte(`{"a":[1,"b",null]}`)}))
		case **v1alpha1.EventRecording: // no stored event has it
		case **v1alpha1.EventTruncation:
			f.Set(reflect.ValueOf(&v1alpha1.EventTruncation{SummaryTruncated: true, SummaryOriginalChars: n}))
		case **int64:
			f.Set(reflect.ValueOf(&n))
		case *int64, *int32:
			f.SetInt(n)
		default:
			if f.Kind() != reflect.String {
				t.Fatalf("field %s is of a type that this test does not know", v.Type().Field(i).Name)
			}
			f.SetString(text)
		}
	}
	return e
}

func TestAppendRow(t *testing.T) {
	zero := int64(0)
	for name, e := range map[string]*v1alpha1.ExecutionEvent{
		"nothing":       {},
		"zeros":         {Type: "x", InputTokens: &zero, Content: &apiextensionsv1.JSON{}},
		"plain":         filled(t, "some text"),
		"quotes":        filled(t, "a \"b\" \\ \n\t\x01 <&> é \u2028"),
		"invalid UTF-8": filled(t, "a\xffb"),
	} {
		row := event.Row(e)
		want, err := json.Marshal(&row)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(event.AppendRow(nil, e))); d != "" {
			t.Errorf("%s (-encoder +ours):\n%s", name, d)
		}
	}
}
