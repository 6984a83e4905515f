"""pty-session.py ROWSxCOLS COMMAND…: runs a command on a terminal of its own and plays a script of steps with it.

Each line of stdin is a JSON array: ["type", TEXT], ["expect", TEXT], ["resize", ROWS, COLUMNS], ["kill", PID]. Prints one
JSON object: the exit status, everything the terminal showed, and whether it was in its first mode again at the end.
"""
import fcntl, json, os, pty, select, struct, sys, termios, time

PATIENCE = 60


def resize(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def main():
    rows, columns = map(int, sys.argv[1].split("x"))
    steps = [json.loads(line) for line in sys.stdin if line.strip()]
    master, slave = pty.openpty()
    resize(master, rows, columns)
    before = termios.tcgetattr(slave)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for fd in (0, 1, 2):
            os.dup2(slave, fd)
        os.execvp(sys.argv[2], sys.argv[2:])
    shown = b""
    seen = 0
    missing = None

    def read(wait):
        nonlocal shown
        ready, _, _ = select.select([master], [], [], wait)
        if ready:
            shown += os.read(master, 65536)
        return bool(ready)

    def ended():
        done, status = os.waitpid(pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if done else None

    code = None
    for step in steps:
        if step[0] == "type":
            os.write(master, step[1].encode())
        elif step[0] == "resize":
            resize(master, step[1], step[2])
        elif step[0] == "kill":
            os.kill(step[1], 9)
        elif step[0] == "expect":
            deadline = time.monotonic() + PATIENCE
            wanted = step[1].encode()
            while wanted not in shown[seen:] and code is None and time.monotonic() < deadline:
                if not read(0.1):
                    code = ended()
            at = shown.find(wanted, seen)
            if at < 0:
                missing = step[1]
                break
            seen = at + len(wanted)
    deadline = time.monotonic() + PATIENCE
    while code is None and missing is None and time.monotonic() < deadline:
        if not read(0.1):
            code = ended()
    while read(0):
        pass
    if code is None:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    restored = termios.tcgetattr(slave) == before
    print(json.dumps({"code": code, "shown": shown.decode(errors="replace"), "restored": restored, "missing": missing}))


main()
