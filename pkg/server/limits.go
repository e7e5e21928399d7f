// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/fairshare"
	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// Default limits of what one task may store and delegate. They are far above what runs need, and far below what
// fills a disk.
const (
	defaultTaskEvents    = 2_000_000
	defaultTaskArtifacts = 1000
	defaultTreeTasks     = 1000
)

func (o *Options) addLimitFlags(fs *pflag.FlagSet) {
	quantity := func(v *resource.QuantityValue, name, value, usage string) {
		v.Quantity = resource.MustParse(value)
		fs.Var(v, name, usage)
	}
	fs.StringToIntVar(&o.NamespaceWeights, "namespace-weight", o.NamespaceWeights, "NAMESPACE=WEIGHT: how much a namespace gets, in relation to others, of slots for runs and chats and of the rate limits of models; others have 1. Repeatable")
	fs.StringToIntVar(&o.Chat.Shares.Reserved, "reserved-chats", o.Chat.Shares.Reserved, "NAMESPACE=NUMBER: turns of chats, of those of --chat-max-concurrent, that only this namespace can have. Repeatable")
	fs.Int32Var(&o.TreeTasks, "tree-tasks", defaultTreeTasks, "how many tasks may be delegated in one tree of tasks, on all its levels together and until they are deleted; more are refused (403). Agents have limits of their own (spec.coordination.maxTasks). 0 is no limit")
	fs.Int64Var(&o.TaskEvents, "task-events", defaultTaskEvents, "how many events a task may have; more are refused (403), except those of controllers. 0 is no limit")
	quantity(&o.TaskEventBytes, "task-event-bytes", "2Gi", "how many bytes of events a task may have, including 400 bytes of index per event; 0 is no limit")
	quantity(&o.TaskEventRate, "task-event-rate", "32Mi", "bytes of events that a task may append per second, in bursts of up to 16 seconds' worth; more is refused with 429. 0 is no limit")
	quantity(&o.NamespaceEventRate, "namespace-event-rate", "64Mi", "the same for all tasks of a namespace together; 0 is no limit")
	quantity(&o.NamespaceEventBytes, "namespace-event-bytes", "20Gi", "how many bytes of events all tasks of a namespace may have together; trimmed and deleted ones no longer count. 0 is no limit")
	fs.Int64Var(&o.TaskArtifacts, "task-artifacts", defaultTaskArtifacts, "how many artifacts a task may have; more are refused (403). 0 is no limit")
	quantity(&o.TaskArtifactBytes, "task-artifact-bytes", "1Gi", "how many bytes the artifacts and the result of a task may have together; 0 is no limit")
	quantity(&o.NamespaceArtifactBytes, "namespace-artifact-bytes", "20Gi", "how many bytes the artifacts, results and logs of all tasks of a namespace may have together; 0 is no limit")
	quantity(&o.TaskArtifactRate, "task-artifact-rate", "32Mi", "bytes of artifacts and results that a task may write per second, in bursts of up to 16 seconds' worth; more is refused with 429. 0 is no limit")
	quantity(&o.NamespaceArtifactRate, "namespace-artifact-rate", "64Mi", "the same for artifacts, results and logs of all tasks of a namespace together; 0 is no limit")
	fs.StringVar(&o.RecordingMode, "recording-mode", string(v1alpha1.RecordingFull), "how much of what runs say and do is kept beside their events, where the agent does not say it (spec.recording.mode): Full, Digests or Off")
	quantity(&o.TaskRecordingBytes, "task-recording-bytes", "256Mi", "how many bytes of recordings a task may have; more is kept as sizes and digests. 0 is no limit")
	quantity(&o.NamespaceRecordingBytes, "namespace-recording-bytes", "20Gi", "the same for all tasks of a namespace together; 0 is no limit")
	quantity(&o.TaskLogRate, "task-log-rate", "1Mi", "bytes of log that a task may append per second, in bursts of up to 16 seconds' worth; more is refused with 429. 0 is no limit")
}

func (o *Options) checkLimits() error {
	limits := map[string]int64{
		"tree-tasks":  int64(o.TreeTasks),
		"task-events": o.TaskEvents, "task-event-bytes": o.TaskEventBytes.Value(), "task-event-rate": o.TaskEventRate.Value(),
		"namespace-event-rate": o.NamespaceEventRate.Value(), "namespace-event-bytes": o.NamespaceEventBytes.Value(),
		"task-artifacts": o.TaskArtifacts, "task-artifact-bytes": o.TaskArtifactBytes.Value(),
		"namespace-artifact-bytes": o.NamespaceArtifactBytes.Value(), "task-log-rate": o.TaskLogRate.Value(),
		"task-artifact-rate": o.TaskArtifactRate.Value(), "namespace-artifact-rate": o.NamespaceArtifactRate.Value(), "task-recording-bytes": o.TaskRecordingBytes.Value(),
		"namespace-recording-bytes": o.NamespaceRecordingBytes.Value(),
	}
	switch mode := v1alpha1.RecordingMode(o.RecordingMode); mode {
	case "":
		o.RecordingMode = string(v1alpha1.RecordingFull)
	case v1alpha1.RecordingFull, v1alpha1.RecordingDigests, v1alpha1.RecordingOff:
	default:
		return fmt.Errorf("--recording-mode must be Full, Digests or Off, not %q", mode)
	}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if limits[name] < 0 {
			return fmt.Errorf("--%s must not be negative", name)
		}
	}
	if err := fairshare.CheckWeights("namespace-weight", o.NamespaceWeights); err != nil {
		return err
	}
	o.Chat.Shares.Weights = o.NamespaceWeights
	return fairshare.CheckReserved("reserved-chats", o.Chat.Shares.Reserved, "chat-max-concurrent", o.Chat.MaxConcurrent)
}

func (o *Options) eventLimits() eventlog.Limits {
	return eventlog.Limits{
		TaskEvents: o.TaskEvents, TaskBytes: o.TaskEventBytes.Value(), TaskRate: o.TaskEventRate.Value(), NamespaceRate: o.NamespaceEventRate.Value(),
		NamespaceBytes: o.NamespaceEventBytes.Value(),
	}
}

func (o *Options) fileLimits() blob.Limits {
	l := blob.Limits{
		Bytes: o.TaskArtifactBytes.Value(), NamespaceBytes: o.NamespaceArtifactBytes.Value(),
		FileRate: o.TaskArtifactRate.Value(), LogRate: o.TaskLogRate.Value(), NamespaceRate: o.NamespaceArtifactRate.Value(),
	}
	if o.TaskArtifacts > 0 {
		l.Files = o.TaskArtifacts + 1 // and the result
	}
	return l
}
