/** Headers as mail programs, relays and lists write them, each a binary string without its last line end. */
export const REAL_HEADERS: string[] = [
  // A webmail service through a relay that checks and seals.
  `Return-Path: <ada@example.com>
Received: from mail-wr1-f41.mx.example.com (mail-wr1-f41.mx.example.com. [192.0.2.41])
        by mx.mail.test with ESMTPS id a1b2c3d4e5-20020a05600c1c2300b0.3.2024.05.03.10.00.01
        for <desk@mail.test>
        (version=TLS1_3 cipher=TLS_AES_128_GCM_SHA256 bits=128/128);
        Fri, 03 May 2024 10:00:01 +0000 (UTC)
Authentication-Results: mx.mail.test;
       dkim=pass header.i=@example.com header.s=20230601 header.b=Q3dSs0a1;
       spf=pass (mx.mail.test: domain of ada@example.com designates 192.0.2.41 as permitted sender) smtp.mailfrom=ada@example.com;
       dmarc=pass (p=NONE sp=QUARANTINE dis=NONE) header.from=example.com
ARC-Seal: i=1; a=rsa-sha256; t=1714730401; cv=none; d=mail.test; s=arc-20160816;
        b=Zt0xAbCdEfGhIjKlMnOpQrStUvWxYz0123456789+/AbCdEfGhIjKlMnOpQrStUvWxYz
         0123456789+/AbCdEfGhIjKlMnOpQrStUvWxYz==
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;
        d=example.com; s=20230601; t=1714730400; x=1715335200;
        h=to:subject:message-id:date:from:mime-version:from:to:cc:subject
         :date:message-id:reply-to;
        bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=;
        b=Q3dSs0a1AbCdEfGhIjKlMnOpQrStUvWxYz0123456789+/AbCdEfGhIjKlMnOpQrStUv
         WxYz0123456789+/AbCdEfGhIjKlMnOpQrStUvWxYz==
X-Google-Style-Smtp-Source: AGHT+IEx/9zPp1
MIME-Version: 1.0
From: Ada Lovelace <ada@example.com>
Date: Fri, 3 May 2024 12:00:00 +0200
Message-ID: <CAF=abc+DEF_123-xyz@mail.example.com>
Subject: Notes of the meeting
To: desk@mail.test
Content-Type: multipart/alternative; boundary="0000000000001a2b3c061789abcd"`,
  // A big company's server, which folds by tabs and writes much of its own.
  `Received: from AM0PR01MB1234.eurprd01.prod.example.org (2001:db8:208:fc::19)
\tby AM9PR01MB5678.eurprd01.prod.example.org (2001:db8:20b:2c9::10) with
\tMicrosoft SMTP Server (version=TLS1_2,
\tcipher=TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384) id 15.20.7544.29; Fri, 3 May
\t2024 10:00:02 +0000
Received: from [127.0.0.1] (localhost [IPv6:::1]) by out.example.org (Postfix)
\twith ESMTPSA id 4VW0Ab1cDeFz9; Fri,  3 May 2024 10:00:00 +0000 (UTC)
From: =?iso-8859-1?Q?J=FCrgen_M=FCller?= <juergen@example.org>
To: "Desk (Mail, Test)" <desk@mail.test>
CC: =?utf-8?B?R3LDvMOfZQ==?= <gruesse@example.org>, undisclosed-recipients:;,
\tTeam: bob@example.org, "Lea \\"L.\\" O'Neil" <lea@example.org>;
Subject: =?utf-8?Q?Re:_Angebot_f=C3=BCr_die_n=C3=A4chste?=
 =?utf-8?Q?_Woche_=E2=80=93_bitte_pr=C3=BCfen?=
Thread-Topic: =?utf-8?B?QW5nZWJvdA==?=
Thread-Index: AdqdP1n3Zk3q2l4oTq+o8V7v5mXv0g==
Date: Fri, 3 May 2024 09:59:58 +0000
Message-ID:
 <AM0PR01MB1234A1B2C3D4E5F60718293A4B5C6D@AM0PR01MB1234.eurprd01.prod.example.org>
References: <CAF=abc+DEF_123-xyz@mail.example.com>
 <20240502101010.GA1234@example.org>
In-Reply-To: <20240502101010.GA1234@example.org>
Accept-Language: de-DE, en-US
Content-Language: de-DE
X-MS-Has-Attach: yes
X-MS-TNEF-Correlator:
x-ms-exchange-antispam-messagedata-chunkcount: 1
x-ms-exchange-antispam-messagedata-0: =?us-ascii?Q?AbCdEfGhIjKlMnOpQrStUvWxYz0123456789?=
 =?us-ascii?Q?+/AbCdEfGhIjKlMnOpQrStUvWxYz0123456789=3D=3D?=
Content-Type: multipart/mixed;
\tboundary="_004_AM0PR01MB1234A1B2C3D4E5F6_"
MIME-Version: 1.0`,
  // A mailing list.
  `Return-Path: <announce-bounces+desk=mail.test@lists.example.org>
Received: by lists.example.org (Postfix, from userid 38)
        id 9F8E7D6C5B; Fri,  3 May 2024 10:00:00 +0000 (UTC)
X-Original-To: announce@lists.example.org
Delivered-To: announce@lists.example.org
Date: Fri, 03 May 2024 10:00:00 -0000
From: Bob (via the list) via Announce <announce@lists.example.org>
Reply-To: Bob <bob@example.org>
To: announce@lists.example.org (The list of
 all (nested) announcements)
Subject: [announce] =?utf-8?q?Caf=C3=A9?= =?utf-8?q?_opens?= at noon
Message-ID: <171473040000.1234.5678901234567890123@lists.example.org>
Precedence: list
List-Id: Announcements <announce.lists.example.org>
List-Unsubscribe: <https://lists.example.org/options/announce>,
        <mailto:announce-request@lists.example.org?subject=unsubscribe>
List-Post: <mailto:announce@lists.example.org>
X-Spam-Status: No, score=-1.9 required=5.0 tests=BAYES_00,DKIM_SIGNED,
        DKIM_VALID,SPF_PASS autolearn=ham autolearn_force=no version=4.0.0
X-Spam-Report: 
        * -1.9 BAYES_00 BODY: Bayes spam probability is 0 to 1%
        *      [score: 0.0000]
        *  0.0 SPF_PASS SPF: sender matches SPF record
Content-Type: text/plain; charset="utf-8"; format=flowed; delsp=yes
Content-Transfer-Encoding: quoted-printable
MIME-Version: 1.0`,
  // Raw UTF-8 (RFC 6532), and raw Latin-1, which old programs write.
  `From: ${binary("Grüße aus Köln <ada@example.com>")}
To: ${binary("Schreibtisch – 机 <desk@mail.test>")}
Subject: ${binary("Ünïcödé ohne Umschweife ✓")}
 ${binary("und gefaltet")}
Comments: J\xfcrgen schrieb \x93Hallo\x94 in einem alten Programm
Date: Fri, 03 May 2024 10:00:00 GMT
Message-Id: <utf8@example.com>
MIME-Version: 1.0 (Apple Mail 16.0 \\(3774.500.171.1.1\\))
Content-Type: text/plain;
	charset=utf-8
Content-Transfer-Encoding: 8bit
X-Mailer: Apple Mail (2.3774.500.171.1.1)`,
  // The oldest syntax that is still met, and very long folding.
  `Received: (qmail 12345 invoked by uid 1000); 3 May 2024 10:00:00 -0000
Received: (nullmailer pid 99 invoked by uid 0);
  Fri, 03 May 2024 10:00:00 -0000
From   : ada@example.com (Ada Lovelace)
To: desk@mail.test
Date : Fri, 3 May 24 10:00 GMT
Subject:Without a blank
X-Empty:
X-Long: ${Array.from({ length: 60 }, (_, at) => `word${at}`).join("\n\t ")}
References: ${Array.from({ length: 25 }, (_, at) => `<${at}.1714730400@example.com>`).join("\n ")}
X-Face: "$%&'()*+,-./:;<=>?@[\\]^_\`{|}~
Message-ID: <"odd id"@example.com>`,
].map((header) => header.replaceAll("\n", "\r\n"));

/** The bytes of UTF-8, a character each. */
function binary(text: string): string {
  return Buffer.from(text).toString("latin1");
}
