import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.avro.generic.GenericRecord;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.iceberg.Files;
import org.apache.iceberg.Schema;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetReaders;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileAppender;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.parquet.VariantShreddingAnalyzer;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.variants.ShreddedObject;
import org.apache.iceberg.variants.ValueArray;
import org.apache.iceberg.variants.VariantMetadata;
import org.apache.iceberg.variants.VariantValue;
import org.apache.iceberg.variants.Variants;
import org.apache.parquet.avro.AvroParquetReader;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.LocalOutputFile;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.variant.Variant;
import org.apache.parquet.variant.VariantBuilder;
import org.apache.parquet.variant.VariantObjectBuilder;
import org.apache.parquet.variant.VariantArrayBuilder;
import org.apache.parquet.variant.VariantValueWriter;

/**
 * Iceberg's and parquet-java's own readers and writers of variants for the differential campaign: one request a line in,
 * one answer a line out. A request has a path, and to write the texts and a file whose Parquet schema parquet-java takes.
 */
public final class VariantsInJava {
    private static final ObjectMapper JSON =
            JsonMapper.builder().enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS).build();

    private interface Engine {
        void write(List<JsonNode> rows, JsonNode request) throws Exception;

        List<String> read(String path) throws Exception;
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream out = System.out;
        System.setOut(System.err);
        Engine engine = arguments[0].equals("iceberg") ? new Iceberg() : new ParquetJava();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                JsonNode request = JSON.readTree(line);
                if (request.has("texts")) {
                    List<JsonNode> rows = new ArrayList<>();
                    for (JsonNode text : request.get("texts")) {
                        rows.add(JSON.readTree(text.asText()));
                    }
                    engine.write(rows, request);
                    answer.putNull("found");
                } else {
                    ArrayNode found = answer.putArray("found");
                    engine.read(request.get("path").asText()).forEach(found::add);
                }
            } catch (Exception | AssertionError error) {
                Throwable cause = error;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                answer.put("error", cause.toString().lines().findFirst().orElse(""));
            }
            out.println(JSON.writeValueAsString(answer));
            out.flush();
        }
    }

    /**
     * The number as Spark has it: the least integer, else a decimal of at most 38 digits, else a double. Spark and
     * arrow-rs read no decimal whose scale is beyond the digits of its width, which the encoding allows: it is a double.
     */
    private static Number number(JsonNode node) {
        BigDecimal given = node.decimalValue();
        if (node.isIntegralNumber()) {
            if (!node.canConvertToLong()) {
                return given.precision() <= 38 ? given : (Number) given.doubleValue();
            }
            long value = node.longValue();
            if (value == (byte) value) {
                return (byte) value;
            }
            if (value == (short) value) {
                return (short) value;
            }
            return value == (int) value ? (Number) (int) value : (Number) value;
        }
        int digits = given.precision() <= 9 ? 9 : given.precision() <= 18 ? 18 : 38;
        boolean fits = given.scale() >= 0 && given.scale() <= digits && given.precision() <= 38;
        return fits ? given : (Number) given.doubleValue();
    }

    private interface Body {
        void write(JsonGenerator json) throws IOException;
    }

    private static String text(Body body) throws IOException {
        StringWriter text = new StringWriter();
        try (JsonGenerator json = JSON.createGenerator(text)) {
            body.write(json);
        }
        return text.toString();
    }

    /** Iceberg with its generic records; it infers the columns of a shredded file itself. */
    private static final class Iceberg implements Engine {
        private static final Schema SCHEMA = new Schema(Types.NestedField.optional(1, "v", Types.VariantType.get()));

        private static final class Analyzer extends VariantShreddingAnalyzer<VariantValue, Void> {
            @Override
            protected List<VariantValue> extractVariantValues(List<VariantValue> rows, int column) {
                return rows;
            }

            @Override
            protected int resolveColumnIndex(Void engine, String name) {
                return 0;
            }
        }

        @Override
        public void write(List<JsonNode> rows, JsonNode request) throws Exception {
            List<Record> records = new ArrayList<>();
            List<VariantValue> values = new ArrayList<>();
            for (JsonNode row : rows) {
                TreeSet<String> names = new TreeSet<>();
                names(row, names);
                VariantMetadata metadata = Variants.metadata(names);
                VariantValue value = value(row, metadata);
                values.add(value);
                Record record = org.apache.iceberg.data.GenericRecord.create(SCHEMA);
                record.setField("v", org.apache.iceberg.variants.Variant.of(metadata, value));
                records.add(record);
            }
            Parquet.WriteBuilder builder = Parquet.write(Files.localOutput(request.get("path").asText()))
                    .schema(SCHEMA)
                    .createWriterFunc(type -> GenericParquetWriter.create(SCHEMA, type));
            if (request.get("shred").asBoolean()) {
                org.apache.parquet.schema.Type typed = new Analyzer().analyzeAndCreateSchema(values, 0);
                builder = builder.variantShreddingFunc((id, name) -> typed);
            }
            try (FileAppender<Record> file = builder.build()) {
                file.addAll(records);
            }
        }

        private static void names(JsonNode node, TreeSet<String> names) {
            node.fieldNames().forEachRemaining(names::add);
            node.elements().forEachRemaining(child -> names(child, names));
        }

        private static VariantValue value(JsonNode node, VariantMetadata metadata) {
            switch (node.getNodeType()) {
                case OBJECT:
                    ShreddedObject object = Variants.object(metadata);
                    for (Map.Entry<String, JsonNode> field : node.properties()) {
                        object.put(field.getKey(), value(field.getValue(), metadata));
                    }
                    return object;
                case ARRAY:
                    ValueArray array = Variants.array();
                    node.elements().forEachRemaining(child -> array.add(value(child, metadata)));
                    return array;
                case STRING:
                    return Variants.of(node.textValue());
                case BOOLEAN:
                    return Variants.of(node.booleanValue());
                case NULL:
                    return Variants.ofNull();
                default:
                    Number number = number(node);
                    if (number instanceof Byte) {
                        return Variants.of(number.byteValue());
                    }
                    if (number instanceof Short) {
                        return Variants.of(number.shortValue());
                    }
                    if (number instanceof Integer) {
                        return Variants.of(number.intValue());
                    }
                    if (number instanceof Long) {
                        return Variants.of(number.longValue());
                    }
                    return number instanceof BigDecimal
                            ? Variants.of((BigDecimal) number)
                            : Variants.of(number.doubleValue());
            }
        }

        @Override
        public List<String> read(String path) throws Exception {
            List<String> found = new ArrayList<>();
            try (CloseableIterable<Record> rows = Parquet.read(Files.localInput(path))
                    .project(SCHEMA)
                    .createReaderFunc(type -> GenericParquetReaders.buildReader(SCHEMA, type))
                    .build()) {
                for (Record row : rows) {
                    Object given = row.getField("v");
                    found.add(given == null ? null
                            : text(json -> write(((org.apache.iceberg.variants.Variant) given).value(), json)));
                }
            }
            return found;
        }

        private static void write(VariantValue value, JsonGenerator json) throws IOException {
            switch (value.type()) {
                case OBJECT:
                    json.writeStartObject();
                    for (String name : value.asObject().fieldNames()) {
                        json.writeFieldName(name);
                        write(value.asObject().get(name), json);
                    }
                    json.writeEndObject();
                    break;
                case ARRAY:
                    json.writeStartArray();
                    for (int i = 0; i < value.asArray().numElements(); i++) {
                        write(value.asArray().get(i), json);
                    }
                    json.writeEndArray();
                    break;
                case NULL:
                    json.writeNull();
                    break;
                default:
                    json.writeObject(value.asPrimitive().get());
            }
        }
    }

    /** parquet-java through Avro; it shreds by a schema that it is given. */
    private static final class ParquetJava implements Engine {
        @Override
        public void write(List<JsonNode> rows, JsonNode request) throws Exception {
            Path like = new Path(request.get("like").asText());
            MessageType schema;
            try (ParquetFileReader file = ParquetFileReader.open(HadoopInputFile.fromPath(like, new Configuration()))) {
                schema = file.getFileMetaData().getSchema();
            }
            try (ParquetWriter<Variant> writer = new Builder(schema, request.get("path").asText()).build()) {
                for (JsonNode row : rows) {
                    VariantBuilder builder = new VariantBuilder();
                    append(row, builder);
                    writer.write(builder.build());
                }
            }
        }

        private static final class Builder extends ParquetWriter.Builder<Variant, Builder> {
            private final MessageType schema;

            Builder(MessageType schema, String path) {
                super(new LocalOutputFile(new File(path).toPath()));
                this.schema = schema;
            }

            @Override
            protected Builder self() {
                return this;
            }

            @Override
            protected WriteSupport<Variant> getWriteSupport(Configuration conf) {
                return new Support(schema);
            }
        }

        private static final class Support extends WriteSupport<Variant> {
            private final MessageType schema;
            private RecordConsumer consumer;

            Support(MessageType schema) {
                this.schema = schema;
            }

            @Override
            public WriteContext init(Configuration conf) {
                return new WriteContext(schema, Map.of());
            }

            @Override
            public void prepareForWrite(RecordConsumer to) {
                consumer = to;
            }

            @Override
            public void write(Variant row) {
                GroupType group = schema.getType(0).asGroupType();
                consumer.startMessage();
                consumer.startField(group.getName(), 0);
                VariantValueWriter.write(consumer, group, row);
                consumer.endField(group.getName(), 0);
                consumer.endMessage();
            }
        }

        private static void append(JsonNode node, VariantBuilder builder) {
            switch (node.getNodeType()) {
                case OBJECT:
                    VariantObjectBuilder object = builder.startObject();
                    for (Map.Entry<String, JsonNode> field : node.properties()) {
                        object.appendKey(field.getKey());
                        append(field.getValue(), object);
                    }
                    builder.endObject();
                    break;
                case ARRAY:
                    VariantArrayBuilder array = builder.startArray();
                    node.elements().forEachRemaining(child -> append(child, array));
                    builder.endArray();
                    break;
                case STRING:
                    builder.appendString(node.textValue());
                    break;
                case BOOLEAN:
                    builder.appendBoolean(node.booleanValue());
                    break;
                case NULL:
                    builder.appendNull();
                    break;
                default:
                    Number number = number(node);
                    if (number instanceof Byte) {
                        builder.appendByte(number.byteValue());
                    } else if (number instanceof Short) {
                        builder.appendShort(number.shortValue());
                    } else if (number instanceof Integer) {
                        builder.appendInt(number.intValue());
                    } else if (number instanceof Long) {
                        builder.appendLong(number.longValue());
                    } else if (number instanceof BigDecimal) {
                        builder.appendDecimal((BigDecimal) number);
                    } else {
                        builder.appendDouble(number.doubleValue());
                    }
            }
        }

        @Override
        public List<String> read(String path) throws Exception {
            List<String> found = new ArrayList<>();
            HadoopInputFile file = HadoopInputFile.fromPath(new Path(path), new Configuration());
            try (ParquetReader<GenericRecord> rows = AvroParquetReader.<GenericRecord>builder(file).build()) {
                for (GenericRecord row = rows.read(); row != null; row = rows.read()) {
                    GenericRecord v = (GenericRecord) row.get("v");
                    found.add(v == null ? null : text(json -> write(
                            new Variant((ByteBuffer) v.get("value"), (ByteBuffer) v.get("metadata")), json)));
                }
            }
            return found;
        }

        private static void write(Variant value, JsonGenerator json) throws IOException {
            switch (value.getType()) {
                case OBJECT:
                    json.writeStartObject();
                    for (int i = 0; i < value.numObjectElements(); i++) {
                        Variant.ObjectField field = value.getFieldAtIndex(i);
                        json.writeFieldName(field.key);
                        write(field.value, json);
                    }
                    json.writeEndObject();
                    break;
                case ARRAY:
                    json.writeStartArray();
                    for (int i = 0; i < value.numArrayElements(); i++) {
                        write(value.getElementAtIndex(i), json);
                    }
                    json.writeEndArray();
                    break;
                case NULL:
                    json.writeNull();
                    break;
                case BOOLEAN:
                    json.writeBoolean(value.getBoolean());
                    break;
                case BYTE:
                case SHORT:
                case INT:
                case LONG:
                    json.writeNumber(value.getLong());
                    break;
                case DOUBLE:
                    json.writeNumber(value.getDouble());
                    break;
                case FLOAT:
                    json.writeNumber(value.getFloat());
                    break;
                case DECIMAL4:
                case DECIMAL8:
                case DECIMAL16:
                    json.writeNumber(value.getDecimal());
                    break;
                default:
                    json.writeString(value.getString());
            }
        }
    }
}
