import PodcastModel
import Testing

@Suite struct WebCredentialsTests {
    @Test(arguments: [
        ("https://u:p@host/feed", "https://host/feed"), ("a https://u:p@host b", "a https://host b"),
        ("url://u%40m:p@host/x?y=a@b", "url://host/x?y=a@b"), ("https://host/@user", "https://host/@user"),
        ("<a href=\"http://u@h/\">me@mail.example</a>", "<a href=\"http://h/\">me@mail.example</a>"),
        ("https://u:p@x@host/", "https://host/"), ("mail me@host", "mail me@host"), ("ö://ä:p@h", "ö://h"),
        ("https://me:pa/ss@host/ x@y", "https://host/ x@y"), ("<https://me:pa#s?s@host/>", "<https://host/>"),
        ("https://host:8080/@user", "https://host:8080/@user"), ("https://[::1]/@user", "https://[::1]/@user"),
    ])
    func `only users and passwords are removed from the addresses in a text`(text: String, clean: String) {
        #expect(WebAddress.withoutCredentials(in: text) == clean)
    }

    @Test func `a podcast’s ID doesn’t depend on the password`() throws {
        let texts = ["https://host/feed", "https://a:1@host/feed", "http://b:2@host/feed/"]
        let ids = try texts.map { PodcastID.feed(at: try #require(WebAddress($0))) }
        #expect(Set(ids).count == 1)
    }

    @Test func `credentials that are added to an address can be extracted from it`() throws {
        let address = try #require(WebAddress("https://host:8443/a/b?c"))
        let credentials = WebCredentials(user: "me@mail", password: "p:/?#@ä%")
        let text = address.text(with: credentials)
        let back = try #require(WebAddress(text))
        #expect(back.webCredentials == credentials)
        #expect(back.withoutCredentials == address)
    }

    @Test(arguments: [("", "p"), ("a:b", "p"), ("u", "p\n"), (String(repeating: "u", count: 1_025), "p")])
    func `credentials that Basic authentication can’t send are refused`(user: String, password: String) {
        #expect(throws: Failure.self) { try WebCredentials(user: user, password: password).check() }
    }
}
