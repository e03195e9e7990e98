"""HAProxy with the configuration that we ship, in front of one prefixd or of two: a command for PREFIXD_DRILLS_FRONT.

    haproxy_front.py [--tls FOLDER] unix:/run/first.sock [unix:/run/second.sock]

--tls: with the certificates in that folder, as the configuration says. Else in plain text.
"""

import argparse
import os
import pathlib
import pwd
import re
import socket

CONFIGURATION = pathlib.Path(__file__).parents[3] / "deploy" / "haproxy.cfg"
FOLDER = "/etc/haproxy/prefixd"  # Where it expects the certificates.


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tls")
    parser.add_argument("servers", nargs="+")
    arguments = parser.parse_args()
    servers = [address.replace("unix:", "unix@") for address in arguments.servers]
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    listener.set_inheritable(True)
    listen = f"fd@{listener.fileno()}"
    if arguments.tls:
        port, options = re.search(r'PROXY_LISTEN "(\S+) (.*)"', CONFIGURATION.read_text()).groups()
        assert port == ":443" and FOLDER in options, options
        listen += " " + options.replace(FOLDER, arguments.tls)
    environment = {
        "PROXY_LISTEN": listen,
        "PROXY_USER": pwd.getpwuid(os.geteuid()).pw_name,
        "PROXY_SERVER_1": servers[0],
        "PROXY_SERVER_2": servers[-1],
        **os.environ,
    }
    print("127.0.0.1:%d" % listener.getsockname()[1], flush=True)
    # It is HAProxy that is terminated, and whose memory is asked for.
    os.execvpe("haproxy", ["haproxy", "-db", "-f", str(CONFIGURATION)], environment)


if __name__ == "__main__":
    main()
