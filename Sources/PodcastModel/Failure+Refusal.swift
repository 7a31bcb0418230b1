extension Failure {
    /// A web server that refused with a status, by its host. Only what it may have by itself later is worth another try.
    public init(refusedWith status: Int, by host: String) {
        switch status {
        case 404, 410:
            self.init(.episodeUnavailable, "\(host) has no such file any more (HTTP \(status)).")
        case 401, 403:
            self.init(
                code: FailureCode.streamFailed.rawValue, message: "\(host) refuses access (HTTP \(status)).",
                retry: false)
        default:
            self.init(
                code: FailureCode.streamFailed.rawValue, message: "\(host) answered with HTTP \(status).",
                retry: status >= 500 || [408, 425, 429].contains(status))
        }
    }

    /// The refusal of a text that `WebAddress` doesn’t accept, with the reason. A user and password in it are left out.
    public static func unusableAddress(_ text: String) -> Failure {
        Failure(
            .badURL,
            "“\(WebAddress.quotable(text))” isn’t a usable address: \(WebAddress.flaw(of: text)).\(encodingHint(for: text))"
        )
    }

    /// What to do about a password with a character that ends the authority of an address.
    private static func encodingHint(for text: String) -> String {
        let bytes = Array(text.utf8)
        guard let (credentials, followsSlashes) = WebAddress.possibleCredentials(in: bytes), followsSlashes,
            bytes[credentials].contains(where: { "/?#".utf8.contains($0) })
        else { return "" }
        return " In a password, write “/” as %2F, “?” as %3F, “#” as %23 and “@” as %40, or use --user."
    }
}

extension WebAddress {
    /// Any text that was meant as an address, shortened and without user and password, for sentences.
    public static func quotable(_ text: String) -> String {
        let shown = repeatable(text).prefix(200)
        return String(String.UnicodeScalarView(shown.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7f }))
    }
}
