// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// extremes calls visit with every number and length of time in v set to its largest and smallest values, one at a time.
func extremes(path string, v reflect.Value, visit func(path string)) {
	each := func(values ...any) {
		was := reflect.ValueOf(v.Interface())
		for _, x := range values {
			v.Set(reflect.ValueOf(x).Convert(v.Type()))
			visit(fmt.Sprintf("%s=%v", path, x))
		}
		v.Set(was)
	}
	switch {
	case v.Type() == reflect.TypeFor[v1alpha1.Duration]():
		each("2562047h47m16.854775807s", "-2562047h47m16.854775807s", "1ns", "0s", "999999h")
	case v.Kind() == reflect.Int64:
		each(int64(math.MaxInt64), int64(math.MinInt64), int64(9999999999), int64(0), int64(-1))
	case v.Kind() == reflect.Int32:
		each(int32(math.MaxInt32), int32(math.MinInt32), int32(0), int32(-1))
	case v.Kind() == reflect.Float64:
		each(math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 0.)
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() || v.Type().Elem().PkgPath() != reflect.TypeFor[v1alpha1.Task]().PkgPath() && v.Type().Elem().Kind() == reflect.Struct {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		extremes(path, v.Elem(), visit)
		v.SetZero()
	case v.Kind() == reflect.Struct && v.Type().PkgPath() == reflect.TypeFor[v1alpha1.Task]().PkgPath():
		for i := range v.NumField() {
			extremes(path+"."+v.Type().Field(i).Name, v.Field(i), visit)
		}
	}
}

// Whatever numbers a task holds, also those that an earlier version accepted: its schedule waits for the next run, writes its status and tells
// people once, and its delays are lengths of time.
func TestExtremeNumbers(t *testing.T) {
	visited := map[string]bool{}
	pristine := func() *v1alpha1.Task {
		return task(func(t *v1alpha1.Task) {
			t.Spec.Schedule = "*/10 * * * *"
			t.Status.Phase = v1alpha1.TaskScheduled
			t.CreationTimestamp = metav1.NewTime(noon().Add(-25 * time.Hour))
		})
	}
	probe := pristine()
	extremes("spec", reflect.ValueOf(&probe.Spec).Elem(), func(path string) {
		visited[path] = true
		x := probe.DeepCopy()
		told, created := 0, 0
		tell := func(context.Context, *v1alpha1.Task, string, string) { told++ }
		now := noon().Add(3 * time.Minute)
		s := scheduler{
			warn: tell, note: tell, now: func() time.Time { return now }, fresh: func(context.Context, *v1alpha1.Task) error { return nil },
			children: func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error) { return nil, nil },
			create:   func(context.Context, *v1alpha1.Task, *v1alpha1.Task) error { created++; return nil },
			append:   func(context.Context, *v1alpha1.Task, ...v1alpha1.ExecutionEvent) error { return nil },
		}
		for round, want := range []time.Duration{7 * time.Minute, 7 * time.Minute, 6 * time.Minute} {
			if round == 2 {
				now = now.Add(time.Minute)
			}
			before := x.DeepCopy()
			outcome := s.do(t.Context(), x)
			if w, ok := errors.AsType[step.Wait](outcome); !ok || w.After != want {
				t.Errorf("%s, round %d: %v, want to wait %v", path, round, outcome, want)
			}
			if d := cmp.Diff(before.Status, x.Status); round > 0 && d != "" {
				t.Errorf("%s, round %d: the status changed: %s", path, round, d)
			}
		}
		if told < 1 || told > 2 || created > 1 || !x.Status.LastScheduleTime.Time.Equal(noon()) {
			t.Errorf("%s: told %d times, created %d, last %v", path, told, created, x.Status.LastScheduleTime)
		}
		p := v1alpha1.RetryPolicy{}
		if x.Spec.RetryPolicy != nil {
			p = *x.Spec.RetryPolicy
		}
		var factor float64
		if p.BackoffMultiplier != nil {
			factor = *p.BackoffMultiplier
		}
		for failed := range int32(5) {
			if d := retryDelay(p.InitialDelay.Value(), factor, failed); d < 0 || d > maxRetryDelay {
				t.Errorf("%s: waits %v before an attempt", path, d)
			}
		}
		if life := x.Spec.Timeout.Value() + tokenSlack; x.Spec.Timeout.Value() > 0 && life < tokenSlack {
			t.Errorf("%s: a token lives for %v", path, life)
		}
	})
	for _, path := range []string{"spec.StartingDeadlineSeconds=9999999999", "spec.StartingDeadlineSeconds=9223372036854775807", "spec.Timeout=999999h", "spec.RetryPolicy.MaxRetries=2147483647"} {
		if !visited[path] {
			t.Errorf("%s was not tried", path)
		}
	}
}
