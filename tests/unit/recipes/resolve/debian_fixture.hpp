#pragma once
// A tiny archive, signed: keys were made for these tests with GnuPG and thrown away. kExpired is by
// a key that expired in 2016, kStranger by one that is not in kKey.
#include <string_view>

namespace mlenv::fixture {

inline constexpr std::string_view kPackages = R"~(Package: apt
Version: 2.6.1
Priority: important
Architecture: amd64
Depends: base-files, gpgv | gpgv2 | gpgv1
Filename: pool/main/a/apt/apt_2.6.1_amd64.deb
Size: 11
SHA256: 1100000000000000000000000000000000000000000000000000000000000011

Package: base-files
Version: 12.4+deb12u11
Essential: yes
Priority: required
Architecture: amd64
Pre-Depends: awk
Description: the base
 with a longer text
 .
 Package: not-one
Filename: pool/main/b/base-files/base-files_12.4+deb12u11_amd64.deb
Size: 12
SHA256: 1200000000000000000000000000000000000000000000000000000000000012

Package: gawk
Version: 1:5.2.1-2
Priority: optional
Architecture: amd64
Provides: awk
Filename: pool/main/g/gawk/gawk_5.2.1-2_amd64.deb
Size: 13
SHA256: 1300000000000000000000000000000000000000000000000000000000000013

Package: gpgv
Version: 2.2.40-1.1
Priority: important
Architecture: amd64
Filename: pool/main/g/gnupg2/gpgv_2.2.40-1.1_amd64.deb
Size: 14
SHA256: 1400000000000000000000000000000000000000000000000000000000000014

Package: gpgv1
Version: 1.4.23-1.1
Priority: optional
Architecture: amd64
Filename: pool/main/g/gnupg1/gpgv1_1.4.23-1.1_amd64.deb
Size: 15
SHA256: 1500000000000000000000000000000000000000000000000000000000000015

Package: mawk
Version: 1.3.4.20200120-3.1
Priority: required
Architecture: amd64
Provides: awk
Filename: pool/main/m/mawk/mawk_1.3.4.20200120-3.1_amd64.deb
Size: 16
SHA256: 1600000000000000000000000000000000000000000000000000000000000016

Package: libelogind0
Version: 246.10-1
Priority: optional
Architecture: amd64
Conflicts: libsystemd0
Provides: libsystemd0 (= 252)
Filename: pool/main/e/elogind/libelogind0_246.10-1_amd64.deb
Size: 17
SHA256: 1700000000000000000000000000000000000000000000000000000000000017

Package: libsystemd0
Version: 252.39-1
Priority: optional
Architecture: amd64
Filename: pool/main/s/systemd/libsystemd0_252.39-1_amd64.deb
Size: 18
SHA256: 1800000000000000000000000000000000000000000000000000000000000018

Package: server
Version: 1.0
Priority: optional
Architecture: amd64
Depends: libsystemd0 (>= 200), light-mta | mta, python3:any
Filename: pool/main/s/server/server_1.0_amd64.deb
Size: 19
SHA256: 1900000000000000000000000000000000000000000000000000000000000019

Package: server
Version: 1.0+security
Priority: optional
Architecture: amd64
Depends: libsystemd0 (>= 200), light-mta | mta, python3:any
Filename: pool/updates/main/s/server/server_1.0+security_amd64.deb
Size: 20
SHA256: 2000000000000000000000000000000000000000000000000000000000000020

Package: light-mta
Version: 3
Priority: optional
Architecture: amd64
Provides: mta
Conflicts: mta
Filename: pool/main/l/light-mta/light-mta_3_amd64.deb
Size: 21
SHA256: 2100000000000000000000000000000000000000000000000000000000000021

Package: heavy-mta
Version: 4
Priority: optional
Architecture: amd64
Provides: mta
Conflicts: mta
Filename: pool/main/h/heavy-mta/heavy-mta_4_amd64.deb
Size: 22
SHA256: 2200000000000000000000000000000000000000000000000000000000000022

Package: python3
Version: 3.11.2-1+b1
Priority: optional
Architecture: amd64
Multi-Arch: allowed
Filename: pool/main/p/python3-defaults/python3_3.11.2-1+b1_amd64.deb
Size: 23
SHA256: 2300000000000000000000000000000000000000000000000000000000000023

Package: broken
Version: 1
Priority: optional
Architecture: amd64
Depends: middle
Filename: pool/main/b/broken/broken_1_amd64.deb
Size: 24
SHA256: 2400000000000000000000000000000000000000000000000000000000000024

Package: middle
Version: 1
Priority: optional
Architecture: all
Depends: python3 (>= 3.12), absent
Filename: pool/main/m/middle/middle_1_all.deb
Size: 25
SHA256: 2500000000000000000000000000000000000000000000000000000000000025

Package: fallback
Version: 1
Priority: optional
Architecture: all
Depends: broken | gpgv1
Filename: pool/main/f/fallback/fallback_1_all.deb
Size: 26
SHA256: 2600000000000000000000000000000000000000000000000000000000000026
)~";

inline constexpr std::string_view kKey = R"~(-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEXgvhABYJKwYBBAHaRw8BAQdAaFgiaDp9ystbAs6DK0izIMBDvrM374vEesso
pq4C1uq0HFRlc3QgYXJjaGl2ZSA8YUBleGFtcGxlLm9yZz6IkAQTFggAOBYhBAx6
KgQQBgt5EqCgVYyIgYxQOUTMBQJeC+EAAhsDBQsJCAcCBhUKCQgLAgQWAgMBAh4B
AheAAAoJEIyIgYxQOUTMy+QBAL4IerI6j8rr6fEbU3UpYxM80ktAXJnTCNY3u4Lc
ZfmnAP4swZ+bR8liZPdOPg53MeMNg9awtDps+MYLOM5JBIjhCg==
=mebr
-----END PGP PUBLIC KEY BLOCK-----
)~";

inline constexpr std::string_view kExpiredKey = R"~(-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEVKSOABYJKwYBBAHaRw8BAQdAH/u+yvSie24uoR7RJd6ZlZ+tPCGf1MRw7+c1
cKVBLvi0H0V4cGlyZWQgYXJjaGl2ZSA8YkBleGFtcGxlLm9yZz6IlgQTFggAPhYh
BJjM9UYj3MMDPPyU4S8+BTylbVb3BQJUpI4AAhsDBQkB4TOABQsJCAcCBhUKCQgL
AgQWAgMBAh4BAheAAAoJEC8+BTylbVb3ha8BANbqr/Q8+P63jhWzT1XtxzTt3aqL
F7dzCczYjdvWrVFnAQC9rYzfcTTzj3TUtRJDlN3qsf8s2u+Qiwqchxw7stKBAA==
=jofN
-----END PGP PUBLIC KEY BLOCK-----
)~";

inline constexpr std::string_view kRelease = R"~(Origin: Debian
Label: Debian
Suite: stable
Codename: bookworm
Date: Sat, 11 Jul 2020 10:16:37 UTC
Acquire-By-Hash: yes
No-Support-for-Architecture-all: Packages
Architectures: all amd64 arm64
Components: main contrib
- a line that starts with a dash
SHA256:
 9c27e82893c0bb6913930668d53a34e9257e2422a60500182326145aea806563 3877 main/binary-amd64/Packages
)~";

inline constexpr std::string_view kInRelease = R"~(-----BEGIN PGP SIGNED MESSAGE-----
Hash: SHA256

Origin: Debian
Label: Debian
Suite: stable
Codename: bookworm
Date: Sat, 11 Jul 2020 10:16:37 UTC
Acquire-By-Hash: yes
No-Support-for-Architecture-all: Packages
Architectures: all amd64 arm64
Components: main contrib
- - a line that starts with a dash
SHA256:
 9c27e82893c0bb6913930668d53a34e9257e2422a60500182326145aea806563 3877 main/binary-amd64/Packages
-----BEGIN PGP SIGNATURE-----

iIQEARYIACwWIQQMeioEEAYLeRKgoFWMiIGMUDlEzAUCXwmbsA4cYUBleGFtcGxl
Lm9yZwAKCRCMiIGMUDlEzB/UAP9VcwlCoPRUwYtdvC6mTxA1/5x4L1/bEUzCiueN
QCv7bgD9FTdQKVQjLezYM5mAjI4A5vTyIWLbR5VviwNI2ZEsIAI=
=C0zp
-----END PGP SIGNATURE-----
)~";

inline constexpr std::string_view kStranger = R"~(-----BEGIN PGP SIGNED MESSAGE-----
Hash: SHA256

Origin: Debian
Label: Debian
Suite: stable
Codename: bookworm
Date: Sat, 11 Jul 2020 10:16:37 UTC
Acquire-By-Hash: yes
No-Support-for-Architecture-all: Packages
Architectures: all amd64 arm64
Components: main contrib
- - a line that starts with a dash
SHA256:
 9c27e82893c0bb6913930668d53a34e9257e2422a60500182326145aea806563 3877 main/binary-amd64/Packages
-----BEGIN PGP SIGNATURE-----

iIQEARYIACwWIQR/hE4O5U+2l13VFsxA7HsoOl7avQUCXwmbsA4cY0BleGFtcGxl
Lm9yZwAKCRBA7HsoOl7avYCZAQD8goGFTA/BTxsmkDi5O0KsKvYXkDHmh/44v7kb
DnNFDgEAz6YbDnC+s3/ZMW23oXl+5E8UMxAsF17CcAQpiiYC/Aw=
=ckqV
-----END PGP SIGNATURE-----
)~";

inline constexpr std::string_view kExpired = R"~(-----BEGIN PGP SIGNED MESSAGE-----
Hash: SHA256

Origin: Debian
Label: Debian
Suite: stable
Codename: bookworm
Date: Sat, 11 Jul 2015 10:16:37 UTC
Acquire-By-Hash: yes
No-Support-for-Architecture-all: Packages
Architectures: all amd64 arm64
Components: main contrib
- - a line that starts with a dash
SHA256:
 9c27e82893c0bb6913930668d53a34e9257e2422a60500182326145aea806563 3877 main/binary-amd64/Packages
-----BEGIN PGP SIGNATURE-----

iIQEARYIACwWIQSYzPVGI9zDAzz8lOEvPgU8pW1W9wUCVaJIsA4cYkBleGFtcGxl
Lm9yZwAKCRAvPgU8pW1W90xxAPwNYN+6XPgET9QVgr8EX/oFBbRplsyB3M1pIdqS
pdGg9gD+Ik87XYBt607zKiEEBohFHHu+yzgzlhTNtDQkZv+Q4w4=
=U1bM
-----END PGP SIGNATURE-----
)~";

inline constexpr std::string_view kThirdParty = R"~(-----BEGIN PGP SIGNED MESSAGE-----
Hash: SHA256

Origin: Somebody
Label: Debian
Suite: stable
Codename: bookworm
Date: Sat, 11 Jul 2020 10:16:37 UTC
Acquire-By-Hash: yes
No-Support-for-Architecture-all: Packages
Architectures: all amd64 arm64
Components: main contrib
- - a line that starts with a dash
SHA256:
 9c27e82893c0bb6913930668d53a34e9257e2422a60500182326145aea806563 3877 main/binary-amd64/Packages
-----BEGIN PGP SIGNATURE-----

iIQEARYIACwWIQQMeioEEAYLeRKgoFWMiIGMUDlEzAUCXwmbsA4cYUBleGFtcGxl
Lm9yZwAKCRCMiIGMUDlEzDdhAQCKxqH+29C9/Nto42dlvf7DN7F1V9Z2G4DicP4h
oJs18wEA88kqdYZROFJ6chmxEWkUCVcQV7XboXDSrn0D0JC9UwI=
=bKgh
-----END PGP SIGNATURE-----
)~";

/// kInRelease of the day before.
inline constexpr std::string_view kOlder = R"~(-----BEGIN PGP SIGNED MESSAGE-----
Hash: SHA256

Origin: Debian
Label: Debian
Suite: stable
Codename: bookworm
Date: Sat, 10 Jul 2020 10:16:37 UTC
Acquire-By-Hash: yes
No-Support-for-Architecture-all: Packages
Architectures: all amd64 arm64
Components: main contrib
- - a line that starts with a dash
SHA256:
 9c27e82893c0bb6913930668d53a34e9257e2422a60500182326145aea806563 3877 main/binary-amd64/Packages
-----BEGIN PGP SIGNATURE-----

iIQEARYIACwWIQQMeioEEAYLeRKgoFWMiIGMUDlEzAUCXwhKMA4cYUBleGFtcGxl
Lm9yZwAKCRCMiIGMUDlEzETrAQC2D409hzGDbAc9x6RF7bsBnx+hDega+IuTnp7q
a+CmbQEA8i/hfGfWQutu0c2QSXBySbGKJJFZjENjJ8S4v8Yvbww=
=vl6l
-----END PGP SIGNATURE-----
)~";

}  // namespace mlenv::fixture
