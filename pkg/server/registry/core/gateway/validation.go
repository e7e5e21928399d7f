// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
)

// Limits in bytes, and others.
const (
	maxKey          = 128
	maxValue        = 1024
	maxUser         = 512
	maxTimeout      = 24 * time.Hour
	maxLate         = 24 * time.Hour
	maxInitialDelay = time.Hour
	maxRetries      = 10
	maxMultiplier   = 10
)

// reservedKeys begins keys of metadata that the platform may set.
const reservedKeys = "platform.ai/"

var specPath = field.NewPath("spec")

// metadataKey is what keys of metadata are made of.
var metadataKey = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)

func validateClass(_ context.Context, c *v1alpha1.GatewayClass) field.ErrorList {
	var errs field.ErrorList
	for i, key := range c.Spec.AllowedMetadataKeys {
		errs = append(errs, validateKey(key, specPath.Child("allowedMetadataKeys").Index(i))...)
	}
	return errs
}

func validateKey(key string, at *field.Path) field.ErrorList {
	if len(key) > maxKey || !metadataKey.MatchString(key) {
		return field.ErrorList{field.Invalid(at, key, fmt.Sprintf("must have from 1 to %d letters, digits and . _ / -", maxKey))}
	}
	return nil
}

func validateGateway(_ context.Context, g *v1alpha1.Gateway) field.ErrorList {
	s := &g.Spec
	errs := validateAdapter(&s.Adapter, specPath.Child("adapter"))
	if s.InboundAuthRef.Name != "" && s.InboundAuthRef.Name == s.OutboundAuthRef.Name {
		errs = append(errs, field.Invalid(specPath.Child("outboundAuthRef", "name"), s.OutboundAuthRef.Name,
			"must be another Secret than that of spec.inboundAuthRef: an adapter must not be able to send itself what the platform sends"))
	}
	at := specPath.Child("metadata")
	if len(s.Metadata) > protocol.MaxMetadata {
		return append(errs, field.TooMany(at, len(s.Metadata), protocol.MaxMetadata))
	}
	for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
		errs = append(errs, validateKey(key, at.Key(key))...)
		if strings.HasPrefix(key, reservedKeys) {
			errs = append(errs, field.Invalid(at.Key(key), key, "keys that begin with "+reservedKeys+" are for the platform"))
		}
		if len(s.Metadata[key]) > maxValue {
			errs = append(errs, field.TooLong(at.Key(key), "", maxValue))
		}
	}
	return errs
}

func validateAdapter(a *v1alpha1.GatewayAdapter, at *field.Path) field.ErrorList {
	switch {
	case a.Endpoint == "" && a.ServiceRef == nil:
		return field.ErrorList{field.Required(at, "one of endpoint and serviceRef must be set")}
	case a.Endpoint != "" && a.ServiceRef != nil:
		return field.ErrorList{field.Forbidden(at.Child("serviceRef"), "only one of endpoint and serviceRef may be set")}
	case a.ServiceRef != nil:
		return nil
	}
	at = at.Child("endpoint")
	if errs := (rule.URL{Schemes: []string{"https"}}).Check(a.Endpoint, at); len(errs) > 0 {
		return errs
	}
	u, err := url.Parse(a.Endpoint)
	if err != nil || u.Hostname() == "" {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "must have a host")}
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "port must be 1–65535")}
		}
	}
	return nil
}

// validateText checks a text of people or of a chat system. It may be empty where it is not needed, or where a tag says that it is.
func validateText(s string, needed bool, limit int, at *field.Path) field.ErrorList {
	switch {
	case s == "" && !needed:
		return nil
	case s == "":
		return field.ErrorList{field.Required(at, "")}
	case strings.TrimSpace(s) == "":
		return field.ErrorList{field.Invalid(at, s, "must not be blank")}
	case len(s) > limit:
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("must have at most %d bytes", limit))}
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		return field.ErrorList{field.Invalid(at, s, "must have no control characters")}
	}
	return nil
}

func validateBinding(b *v1alpha1.GatewayBinding) field.ErrorList {
	s := &b.Spec
	match := specPath.Child("match")
	errs := validateText(s.Match.AccountID, false, protocol.MaxID, match.Child("accountId"))
	errs = append(errs, validateText(s.Match.ContextID, false, protocol.MaxID, match.Child("contextId"))...)
	errs = append(errs, validateText(s.Match.ThreadID, false, protocol.MaxID, match.Child("threadId"))...)
	errs = append(errs, validateText(s.Match.SenderID, false, protocol.MaxID, match.Child("senderId"))...)
	for i, id := range s.SenderPolicy.AllowedSenderIDs {
		errs = append(errs, validateText(id, true, protocol.MaxID, specPath.Child("senderPolicy", "allowedSenderIds").Index(i))...)
	}
	name := specPath.Child("session", "name")
	switch explicit := s.Session.Mode == v1alpha1.GatewaySessionExplicit; {
	case !explicit && s.Session.Name != "":
		errs = append(errs, field.Forbidden(name, "is for the mode explicit"))
	case explicit:
		errs = append(errs, validateText(s.Session.Name, true, protocol.MaxID, name)...) // a tag limits it further
	}
	errs = append(errs, validateTaskDefaults(&s.TaskDefaults, specPath.Child("taskDefaults"))...)
	return append(errs, upTo(s.LateAnswers.After, maxLate, specPath.Child("lateAnswers", "after"))...)
}

func validateTaskDefaults(d *v1alpha1.GatewayTaskDefaults, at *field.Path) field.ErrorList {
	errs := upTo(d.Timeout, maxTimeout, at.Child("timeout"))
	p := d.RetryPolicy
	if p == nil {
		return errs
	}
	at = at.Child("retryPolicy")
	if p.MaxRetries > maxRetries { // a tag says that it is not negative
		errs = append(errs, field.Invalid(at.Child("maxRetries"), p.MaxRetries, fmt.Sprintf("must be between 0 and %d", maxRetries)))
	}
	errs = append(errs, rule.Between(p.BackoffMultiplier, 1, maxMultiplier, at.Child("backoffMultiplier"))...)
	return append(errs, upTo(p.InitialDelay, maxInitialDelay, at.Child("initialDelay"))...)
}

// upTo requires a duration, if set, to be greater than zero and at most a limit.
func upTo(d *v1alpha1.Duration, limit time.Duration, at *field.Path) field.ErrorList {
	if errs := rule.Positive(d, at); len(errs) > 0 || d == nil {
		return errs
	}
	if d.Value() > limit {
		return field.ErrorList{field.Invalid(at, *d, fmt.Sprintf("must be at most %gh", limit.Hours()))}
	}
	return nil
}

func validateIdentity(i *v1alpha1.GatewayIdentity) field.ErrorList {
	s := &i.Spec
	errs := validateText(s.AccountID, false, protocol.MaxID, specPath.Child("accountId"))
	errs = append(errs, validateText(s.SenderID, false, protocol.MaxID, specPath.Child("senderId"))...)
	errs = append(errs, validateText(s.Username, false, maxUser, specPath.Child("username"))...)
	for n, group := range s.Groups {
		errs = append(errs, validateText(group, true, maxUser, specPath.Child("groups").Index(n))...)
	}
	return errs
}
