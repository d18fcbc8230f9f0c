package clickhouse

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// Codes of ClickHouse's errors that we raise ourselves or that have a status of their own.
const (
	codeNotImplemented   = 48
	codeSyntax           = 62
	codeTooManyQueries   = 202
	codeTimeout          = 159
	codeRequiredPassword = 194
	codeStdException     = 1001
	codeCannotDecompress = 271
	codeNoReadData       = 33
	codeAuthentication   = 516
)

// exception is an error as ClickHouse words it: `Code: N. DB::Exception: text. (NAME)`.
type exception struct {
	code int
	text string
}

func (e *exception) Error() string { return e.text }

// engineError reads the code out of the engine's message.
func engineError(message string) *exception {
	message = strings.TrimSpace(message)
	if rest, ok := strings.CutPrefix(message, "Code: "); ok {
		digits, _, _ := strings.Cut(rest, ".")
		if code, err := strconv.Atoi(digits); err == nil {
			return &exception{code: code, text: message}
		}
	}
	return newException(codeStdException, "STD_EXCEPTION", message)
}

func newException(code int, name, text string) *exception {
	return &exception{code: code, text: "Code: " + strconv.Itoa(code) + ". DB::Exception: " +
		strings.TrimSuffix(text, ".") + ". (" + name + ")"}
}

// asException turns any error into one that ClickHouse's clients can read.
func asException(err error) *exception {
	var e *exception
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &tooLarge):
		return newException(codeSyntax, "SYNTAX_ERROR", "Max query size exceeded: "+err.Error())
	default:
		return newException(codeNoReadData, "CANNOT_READ_ALL_DATA", err.Error())
	}
}

// statusByCode gives the HTTP status of a code as ClickHouse's own front does; other codes are 500.
var statusByCode = map[int]int{
	codeRequiredPassword: http.StatusUnauthorized,
	192:                  http.StatusForbidden, // UNKNOWN_USER
	193:                  http.StatusForbidden, // WRONG_PASSWORD
	codeAuthentication:   http.StatusForbidden,
	497:                  http.StatusForbidden,  // ACCESS_DENIED
	6:                    http.StatusBadRequest, // CANNOT_PARSE_TEXT
	25:                   http.StatusBadRequest, // CANNOT_PARSE_ESCAPE_SEQUENCE
	26:                   http.StatusBadRequest, // CANNOT_PARSE_QUOTED_STRING
	27:                   http.StatusBadRequest, // CANNOT_PARSE_INPUT_ASSERTION_FAILED
	codeNoReadData:       http.StatusBadRequest,
	35:                   http.StatusBadRequest, // UNKNOWN_ELEMENT_IN_AST
	38:                   http.StatusBadRequest, // CANNOT_PARSE_DATE
	41:                   http.StatusBadRequest, // CANNOT_PARSE_DATETIME
	53:                   http.StatusBadRequest, // TYPE_MISMATCH
	codeSyntax:           http.StatusBadRequest,
	69:                   http.StatusBadRequest, // ARGUMENT_OUT_OF_BOUND
	72:                   http.StatusBadRequest, // CANNOT_PARSE_NUMBER
	117:                  http.StatusBadRequest, // INCORRECT_DATA
	167:                  http.StatusBadRequest, // TOO_DEEP_AST
	168:                  http.StatusBadRequest, // TOO_BIG_AST
	codeCannotDecompress: http.StatusBadRequest,
	376:                  http.StatusBadRequest, // CANNOT_PARSE_UUID
	456:                  http.StatusBadRequest, // UNKNOWN_QUERY_PARAMETER
	457:                  http.StatusBadRequest, // BAD_QUERY_PARAMETER
	46:                   http.StatusNotFound,   // UNKNOWN_FUNCTION
	47:                   http.StatusNotFound,   // UNKNOWN_IDENTIFIER
	50:                   http.StatusNotFound,   // UNKNOWN_TYPE
	56:                   http.StatusNotFound,   // UNKNOWN_STORAGE
	60:                   http.StatusNotFound,   // UNKNOWN_TABLE
	63:                   http.StatusNotFound,   // UNKNOWN_AGGREGATE_FUNCTION
	73:                   http.StatusNotFound,   // UNKNOWN_FORMAT
	81:                   http.StatusNotFound,   // UNKNOWN_DATABASE
	115:                  http.StatusNotFound,   // UNKNOWN_SETTING
	codeNotImplemented:   http.StatusNotImplemented,
	codeTimeout:          http.StatusGatewayTimeout,
	codeTooManyQueries:   http.StatusServiceUnavailable,
}

func (e *exception) status() int {
	if status, ok := statusByCode[e.code]; ok {
		return status
	}
	return http.StatusInternalServerError
}
