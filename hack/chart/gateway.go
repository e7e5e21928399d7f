// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Values of controller.gateway that are no flags.
const (
	allowEphemeralStore = "allowEphemeralStore" // templates/checks.yaml reads it
	crdsReadyOverride   = "crdsReadyOverride"   // nothing reads it
)

// gatewayOfController are the values of controller.gateway that are flags of the controller, too. All of them are flags of the API server,
// which has the door of the adapters and sends deliveries.
var gatewayOfController = []string{"batchSize", "claimLease"}

// gatewayArgs returns the arguments of a program about gateways. An argument is there only if its value is not the default, which is that of
// the program, so that the chart with its default values is the same as Kustomize.
func gatewayArgs(program string, defaults object) (args []any) {
	if program != "apiserver" && program != "controller" {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		if key == allowEphemeralStore || key == crdsReadyOverride || program == "controller" && !slices.Contains(gatewayOfController, key) {
			continue
		}
		args = append(args, block(gatewayArg(key, defaults[key])))
	}
	return args
}

// gatewayArg returns the lines of a template that set the flag of a value. Helm has large numbers as floating-point ones, which would be
// written as 1e+06.
func gatewayArg(key string, otherwise any) string {
	at, flag := ".Values.controller.gateway."+key, gatewayFlag(key)
	switch otherwise := otherwise.(type) {
	case bool:
		return fmt.Sprintf("{{- if ne %s %t }}\n- %s={{ %s }}\n{{- end }}", at, otherwise, flag, at)
	case float64:
		return fmt.Sprintf("{{- if ne (int64 %s) %d }}\n- %s={{ int64 %s }}\n{{- end }}", at, int64(otherwise), flag, at)
	case []any:
		return fmt.Sprintf("{{- range %s }}\n- {{ printf %q . | quote }}\n{{- end }}", at, flag+"=%s")
	default:
		return fmt.Sprintf("{{- if ne %s %q }}\n- %s={{ %s }}\n{{- end }}", at, otherwise, flag, at)
	}
}

// gatewayFlag returns the flag of a value: --gateway-event-expiry of eventExpiry.
func gatewayFlag(key string) string {
	var flag strings.Builder
	flag.WriteString("--gateway-")
	for _, r := range key {
		if unicode.IsUpper(r) {
			flag.WriteByte('-')
		}
		flag.WriteRune(unicode.ToLower(r))
	}
	return flag.String()
}
