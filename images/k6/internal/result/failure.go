package result

import (
	"encoding/json"
	"fmt"
	"os"
)

// GiveUp says on standard output why there will be no result, and ends the process.
func GiveUp(reason string, err error, code int) {
	SayFailure(reason, err)
	os.Exit(code)
}

// SayFailure says on standard output why there will be no result.
func SayFailure(reason string, err error) {
	text, _ := json.Marshal(struct { // two strings always encode
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}{reason, err.Error()})
	fmt.Printf("LAPTIME-ERROR %s\n", text)
}
