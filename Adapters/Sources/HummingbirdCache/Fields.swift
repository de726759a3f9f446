import CacheEngine
import HTTPTypes

extension HeaderFields {
    init(_ fields: HTTPFields) {
        self.init(fields.map { ($0.name.rawName, $0.value) })
    }
}

extension HTTPFields {
    init(_ fields: HeaderFields) {
        self.init()
        for (name, value) in fields.pairs {
            guard let name = HTTPField.Name(name) else { continue }
            append(HTTPField(name: name, value: value))
        }
    }
}
