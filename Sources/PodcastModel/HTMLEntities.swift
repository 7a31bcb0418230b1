/// Decodes character references and HTML’s named entities, which feeds use although XML doesn’t define them.
public enum HTMLEntities {
    /// The characters of XML and Latin-1, and the usual typographical ones.
    public static let named: [String: Unicode.Scalar] = {
        // The names in the order of their code points from U+00A0.
        let latin = """
            nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute \
            micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring \
            AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml \
            times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil \
            egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash \
            ugrave uacute ucirc uuml yacute thorn yuml
            """
        var names: [String: Unicode.Scalar] = [
            "lt": "<", "gt": ">", "quot": "\"", "apos": "'", "amp": "&",
            "ndash": "\u{2013}", "mdash": "\u{2014}", "lsquo": "\u{2018}", "rsquo": "\u{2019}", "sbquo": "\u{201a}",
            "ldquo": "\u{201c}", "rdquo": "\u{201d}", "bdquo": "\u{201e}", "bull": "\u{2022}", "hellip": "\u{2026}",
            "prime": "\u{2032}", "lsaquo": "\u{2039}", "rsaquo": "\u{203a}", "euro": "\u{20ac}", "trade": "\u{2122}",
            "larr": "\u{2190}", "rarr": "\u{2192}", "minus": "\u{2212}", "OElig": "\u{152}", "oelig": "\u{153}",
            "Scaron": "\u{160}", "scaron": "\u{161}", "ensp": "\u{2002}", "emsp": "\u{2003}", "thinsp": "\u{2009}",
            "zwnj": "\u{200c}", "zwj": "\u{200d}", "dagger": "\u{2020}", "permil": "\u{2030}", "hearts": "\u{2665}",
        ]
        for (offset, name) in latin.split(separator: " ").enumerated() {
            names[String(name)] = Unicode.Scalar(UInt32(0xa0 + offset))
        }
        return names
    }()

    /// Decodes a reference at the start of `bytes`, such as `&amp;`, `&#38;` or `&#x26;`, and returns its length. Nil
    /// if the ampersand doesn’t start a reference.
    public static func reference(in bytes: ArraySlice<UInt8>) -> (character: Unicode.Scalar, length: Int)? {
        let name = bytes.dropFirst().prefix(12).prefix { $0 == UInt8(ascii: "#") || $0.isASCIIAlphanumeric }
        guard !name.isEmpty, name.endIndex < bytes.endIndex, bytes[name.endIndex] == UInt8(ascii: ";"),
            let character = character(named: String(decoding: name, as: UTF8.self))
        else { return nil }
        return (character, name.count + 2)
    }

    /// Replaces a text’s references with their characters.
    public static func decoded(_ bytes: ArraySlice<UInt8>) -> String {
        var result: [UInt8] = []
        var rest = bytes
        while let byte = rest.first {
            if byte == UInt8(ascii: "&"), let (character, length) = reference(in: rest) {
                result.append(contentsOf: String(character).utf8)
                rest = rest.dropFirst(length)
            } else {
                result.append(byte)
                rest = rest.dropFirst()
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func character(named name: String) -> Unicode.Scalar? {
        guard name.hasPrefix("#") else { return named[name] }
        let digits = name.dropFirst()
        let isHexadecimal = digits.hasPrefix("x") || digits.hasPrefix("X")
        let value = isHexadecimal ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        return value.flatMap { $0 == 0 ? nil : Unicode.Scalar($0) }
    }
}
