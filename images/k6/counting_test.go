package main

import (
	"fmt"
	"strings"
	"testing"
)

// What nobody catches in a promise ends an iteration as what is thrown does.
func TestRejectedPromisesAreExceptions(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"async":      `export default async function () { throw new Error('wrong'); }`,
		"after":      `export default async function () { await Promise.resolve(); throw new Error('wrong'); }`,
		"unhandled":  `export default function () { Promise.reject(new Error('wrong')); }`,
		"no error":   `export default async function () { throw 'wrong'; }`,
		"inner":      `async function ask() { throw new Error('wrong'); } export default function () { ask(); }`,
		"a callback": `export default function () { setTimeout(() => { throw new Error('wrong'); }, 1); }`,
		"exec":       `export async function named() { throw new Error('wrong'); }`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario := `own: { executor: 'per-vu-iterations', vus: 2, iterations: 10 }`
			if name == "exec" {
				scenario = `own: { executor: 'per-vu-iterations', vus: 2, iterations: 10, exec: 'named' }`
			}
			out, _ := own(t, nil, write(t, fmt.Sprintf(`export const options = { scenarios: { %s } }; %s`, scenario, body)))
			said, thrown := out.result.Script, int64(0)
			for text, count := range said.Exceptions {
				thrown += count
				if !strings.Contains(text, "wrong") {
					t.Errorf("%q", text)
				}
			}
			if said.Iterations != 20 || thrown != 20 || len(said.Exceptions) != 1 {
				t.Errorf("%d iterations, exceptions %v\n%s", said.Iterations, said.Exceptions, out.stderr)
			}
		})
	}
}

// What a promise that is caught was rejected with is no exception, nor is what a script writes to its console.
func TestCaughtRejectionsAreNoExceptions(t *testing.T) {
	t.Parallel()
	out, _ := own(t, nil, write(t, `
		export const options = { iterations: 5 };
		export default async function () {
			try { await Promise.reject(new Error('caught')); } catch (e) { console.error('Uncaught (in promise) ' + e); }
		}`))
	if said := out.result.Script; said.Iterations != 5 || len(said.Exceptions) != 0 {
		t.Errorf("%d iterations, exceptions %v", said.Iterations, said.Exceptions)
	}
}
