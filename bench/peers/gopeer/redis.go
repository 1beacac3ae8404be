package gopeer

import (
	"context"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/tidwall/redcon"
)

// serveRedis serves the commands GET and SET with redcon.
func serveRedis(ctx context.Context, e End, ready func()) error {
	l, err := e.listen(ctx)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })() // Serve then closes all connections
	var values sync.Map
	ready()
	return redcon.Serve(l, func(c redcon.Conn, cmd redcon.Command) {
		switch name := strings.ToUpper(string(cmd.Args[0])); {
		case name == "SET" && len(cmd.Args) == 3:
			values.Store(string(cmd.Args[1]), cmd.Args[2])
			c.WriteString("OK")
		case name == "GET" && len(cmd.Args) == 2:
			v, _ := values.Load(string(cmd.Args[1]))
			value, _ := v.([]byte) // nil, the empty string, for a key that is not there
			c.WriteBulk(value)
		default:
			c.WriteError("ERR unknown command '" + name + "'") // go-redis then does without it
		}
	}, nil, nil)
}

// runRedis sets a key to a message of the requested size, and gets it for each message.
func runRedis(ctx context.Context, e End, a Ask) (tally, error) {
	db := redis.NewClient(&redis.Options{
		Addr: e.Addr, Dialer: e.dialer, MaxRetries: -1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer db.Close()
	const key = "key"
	if err := db.Set(ctx, key, make([]byte, a.Size), 0).Err(); err != nil {
		return tally{}, err
	}
	return a.over(&requestPipe{request: func([]byte) ([]byte, error) { return db.Get(ctx, key).Bytes() }})
}
