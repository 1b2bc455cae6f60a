package home_test

import (
	"os"
	"testing"

	"slotscope/handlers/handlertest"
)

func TestMain(m *testing.M) { os.Exit(handlertest.Main(m)) }
