import LibC

/// The part of an address between `//` and the path: a server, optionally with a user and password.
///
/// Its initializer refuses everything that a resolver or an HTTP library may misinterpret, so that no other code needs
/// to check it.
struct WebAuthority: Sendable, Hashable {
    /// The user and password, percent-encoded; nil if there are none.
    let userInfo: String?
    /// The host in lower case: a name in ASCII, an IPv4 address, or an IPv6 address in brackets.
    let host: String
    /// The port, unless it is the scheme’s default.
    let port: UInt16?

    private static let maximumHostLength = 253
    private static let maximumLabelLength = 63
    private static let userInfoBytes = Set("!$&'()*+,;=:-._~%".utf8)

    /// Creates an authority; nil unless the host, the port and the user are well-formed.
    init?(_ text: Substring, scheme: String) {
        let bytes = text.utf8
        var rest = text
        if let at = bytes.lastIndex(of: UInt8(ascii: "@")) {
            let encoded = percentEncoded(Self.withoutStrayPercents(text[..<at]), keeping: Self.userInfoBytes)
            guard percentDecoded(encoded)?.utf8.contains(where: \.isASCIIControl) == false else { return nil }
            userInfo = encoded
            rest = text[bytes.index(after: at)...]
        } else {
            userInfo = nil
        }
        var host = rest
        var port: UInt16?
        if let colon = rest.utf8.lastIndex(of: UInt8(ascii: ":")), !rest.utf8[colon...].contains(UInt8(ascii: "]")) {
            let digits = rest[rest.utf8.index(after: colon)...]
            host = rest[..<colon]
            guard digits.utf8.allSatisfy(\.isASCIIDigit) else { return nil }
            if !digits.isEmpty {
                guard let number = UInt16(digits), number > 0 else { return nil }
                port = number
            }
        }
        guard let host = Self.host(host) else { return nil }
        self.host = host
        self.port = port == WebOrigin.defaultPort(of: scheme) ? nil : port
    }

    /// The whole authority, normalised.
    var text: String { (userInfo.map { $0 + "@" } ?? "") + hostAndPort }
    var hostAndPort: String { host + (port.map { ":\($0)" } ?? "") }

    // MARK: Host

    private static func host(_ text: Substring) -> String? {
        guard !text.isEmpty, text.utf8.count <= 4 * maximumHostLength else { return nil }
        if text.utf8.first == UInt8(ascii: "[") {
            guard text.utf8.last == UInt8(ascii: "]") else { return nil }
            let inner = text.dropFirst().dropLast()
            guard inner.utf8.allSatisfy({ isHexadecimal($0) || ":.".utf8.contains($0) }), parses(inner, as: AF_INET6)
            else { return nil }
            return text.lowercased()
        }
        var labels: [String] = []
        for label in text.lowercased().utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            guard let label = asciiLabel(Substring(label)) else { return nil }
            labels.append(label)
        }
        // A complete name may end with a dot.
        let names = labels.last?.isEmpty == true ? labels.dropLast() : labels[...]
        guard !names.isEmpty, !names.contains("") else { return nil }
        let host = labels.joined(separator: ".")
        guard host.utf8.count <= maximumHostLength else { return nil }
        // A number at the end means an IPv4 address, which some libraries parse differently.
        guard let last = names.last, !isNumber(last) || parses(host[...], as: AF_INET) else { return nil }
        return host
    }

    /// A label of a name, in lower case and in ASCII; nil if it is invalid in a name.
    private static func asciiLabel(_ label: Substring) -> String? {
        if label.utf8.allSatisfy({ $0 < 0x80 }) {
            guard label.utf8.count <= maximumLabelLength, label.utf8.allSatisfy(isNameByte) else { return nil }
            return String(label)
        }
        let scalars = Array(label.unicodeScalars)
        guard scalars.count <= maximumLabelLength, scalars.allSatisfy(isNameScalar) else { return nil }
        let encoded = "xn--" + Punycode.encode(scalars)
        return encoded.utf8.count <= maximumLabelLength ? encoded : nil
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        byte.isASCIIAlphanumeric || "-_".utf8.contains(byte)
    }

    /// Whether the scalar is a letter, mark or digit of any script; lookalikes such as full-width letters aren’t.
    private static func isNameScalar(_ scalar: Unicode.Scalar) -> Bool {
        guard !scalar.isASCII else { return isNameByte(UInt8(truncatingIfNeeded: scalar.value)) }
        guard !(0xff00...0xffef).contains(scalar.value) else { return false }
        switch scalar.properties.generalCategory {
        case .lowercaseLetter, .modifierLetter, .otherLetter, .nonspacingMark, .spacingMark, .decimalNumber: return true
        default: return false
        }
    }

    private static func isNumber(_ label: String) -> Bool {
        label.utf8.allSatisfy(\.isASCIIDigit)
            || label.hasPrefix("0x") && label.dropFirst(2).utf8.allSatisfy(isHexadecimal)
    }

    private static func parses(_ text: Substring, as family: Int32) -> Bool {
        var address = in6_addr()
        return inet_pton(family, String(text), &address) == 1
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool { byte.hexadecimalValue != nil }

    // MARK: User

    /// Replaces each percent sign that starts no escape with `%25`: a password may contain one.
    private static func withoutStrayPercents(_ text: Substring) -> String {
        let bytes = Array(text.utf8)
        var kept: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            kept.append(byte)
            guard byte == UInt8(ascii: "%") else { continue }
            let escape = bytes[(index + 1)...].prefix(2)
            if escape.count < 2 || !escape.allSatisfy(isHexadecimal) { kept += Array("25".utf8) }
        }
        return String(decoding: kept, as: UTF8.self)
    }
}

/// Encodes Unicode names in the ASCII form of the domain name system (RFC 3492).
enum Punycode {
    private static let base = 36
    private static let (tMinimum, tMaximum, skew, damp) = (1, 26, 38, 700)

    /// Encodes a label, without the prefix `xn--`. Its length must be limited, because the cost is quadratic.
    static func encode(_ label: [Unicode.Scalar]) -> String {
        var output = label.filter(\.isASCII).map { UInt8(truncatingIfNeeded: $0.value) }
        let basic = output.count
        var handled = basic
        if basic > 0 { output.append(UInt8(ascii: "-")) }
        var (code, delta, bias) = (UInt32(0x80), 0, 72)
        while handled < label.count, let next = label.lazy.map(\.value).filter({ $0 >= code }).min() {
            delta += Int(next - code) * (handled + 1)
            code = next
            for scalar in label {
                if scalar.value < code { delta += 1 }
                guard scalar.value == code else { continue }
                output += digits(of: delta, bias)
                bias = adapted(delta, handled + 1, isFirst: handled == basic)
                delta = 0
                handled += 1
            }
            delta += 1
            code += 1
        }
        return String(decoding: output, as: UTF8.self)
    }

    private static func digits(of delta: Int, _ bias: Int) -> [UInt8] {
        var output: [UInt8] = []
        var (rest, weight) = (delta, base)
        while true {
            let threshold = min(max(weight - bias, tMinimum), tMaximum)
            guard rest >= threshold else { break }
            output.append(digit(threshold + (rest - threshold) % (base - threshold)))
            rest = (rest - threshold) / (base - threshold)
            weight += base
        }
        output.append(digit(rest))
        return output
    }

    private static func digit(_ value: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: value < 26 ? value + 0x61 : value - 26 + 0x30)
    }

    private static func adapted(_ delta: Int, _ count: Int, isFirst: Bool) -> Int {
        var delta = isFirst ? delta / damp : delta / 2
        delta += delta / count
        var steps = 0
        while delta > (base - tMinimum) * tMaximum / 2 {
            delta /= base - tMinimum
            steps += base
        }
        return steps + (base - tMinimum + 1) * delta / (delta + skew)
    }
}

/// Encodes every byte but letters, digits and `kept` as `%XX`.
func percentEncoded(_ text: some StringProtocol, keeping kept: Set<UInt8>) -> String {
    func isPlain(_ byte: UInt8) -> Bool { byte.isASCIIAlphanumeric || kept.contains(byte) }
    if text.utf8.allSatisfy(isPlain) { return String(text) }
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
        if isPlain(byte) {
            bytes.append(byte)
        } else {
            bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }
    return String(decoding: bytes, as: UTF8.self)
}

/// Decodes each `%XX`; nil if the result has a zero byte or isn’t UTF-8.
func percentDecoded(_ text: some StringProtocol) -> String? {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
        if byte == UInt8(ascii: "%"), let high = rest.first?.hexadecimalValue,
            let low = rest.dropFirst().first?.hexadecimalValue
        {
            bytes.append(high << 4 | low)
            rest = rest.dropFirst(2)
        } else {
            bytes.append(byte)
        }
    }
    guard !bytes.contains(0) else { return nil }
    return String(validating: bytes, as: UTF8.self)
}
