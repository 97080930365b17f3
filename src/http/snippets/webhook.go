package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

const toleranceSeconds = 300

// IsGenuine takes the body as it came in, before anything parses it.
func IsGenuine(body []byte, signature, secret string) bool {
	stamp := ""
	given := []string{}
	for _, part := range strings.Split(signature, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case name == "t" && stamp == "":
			stamp = value
		case name == "v1":
			given = append(given, value)
		}
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return false
	}
	if age := time.Now().Unix() - seconds; age > toleranceSeconds || age < -toleranceSeconds {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	expected := mac.Sum(nil)
	for _, value := range given {
		sum, err := hex.DecodeString(value)
		if err == nil && hmac.Equal(sum, expected) {
			return true
		}
	}
	return false
}
