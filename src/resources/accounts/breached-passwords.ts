/** The passwords that every list of leaked ones begins with, of at least eight characters, in lower case. */
export const BREACHED = new Set(
  `12345678 123456789 1234567890 12345678910 0123456789 987654321 9876543210 0987654321 87654321 11223344 1122334455
  112233445566 12341234 123123123 123454321 12344321 147258369 741852963 159753456 123321123 123698745 1q2w3e4r
  1q2w3e4r5t 1qaz2wsx 1qaz2wsx3edc 1qazxsw2 q1w2e3r4 q1w2e3r4t5 qwertyui qwertyuiop qwerty12 qwerty123 qwerty1234
  qwerty12345 qwerty123456 asdfghjk asdfghjkl zxcvbnm1 zxcvbnm123 qazwsxedc qazwsx123 1234qwer 123qweasd abcd1234
  abc12345 abcdefgh abcdefg1 a1b2c3d4 a123456789 aa123456 aa12345678 password password1 password12 password123
  password1234 password! password1! passw0rd p@ssw0rd p@ssword pa55word passwort passwort1 password2 password01
  letmein1 letmein123 welcome1 welcome123 welcome2024 welcome2025 admin123 admin1234 administrator changeme changeme1
  changeme123 default1 secret123 test1234 testtest testing1 testing123 iloveyou iloveyou1 iloveyou2 sunshine sunshine1
  princess princess1 football football1 baseball baseball1 basketball superman superman1 starwars pokemon1 dragon123
  monkey123 michelle jennifer jonathan jessica1 charlie1 trustno1 whatever whatever1 computer internet samantha
  victoria liverpool liverpool1 chelsea1 arsenal1 mustang1 corvette maverick midnight butterfly chocolate elephant
  mercedes steelers godzilla marlboro master123 shadow12 hello123 hello1234 hellohello blink182 slipknot metallica
  spiderman batman123 passwordpassword correcthorsebatterystaple mailwright mailwright1 mailwright123 google123
  facebook linkedin dropbox1 snoopy12 summer2024 summer2025 winter2024 winter2025 freedom1 startrek friends1
  lovelove loveyou1 babygirl babygirl1 asdf1234 zaq12wsx zaq1zaq1 qweasdzxc q1q2q3q4 pass1234 user1234 guest123 root1234`.split(
    /\s+/,
  ),
);
